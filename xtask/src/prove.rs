//! `prove`: that the compiled guard keeps its promises, by executing its bytes on every input at once.
//!
//! The prover is `tests/proof`, in Python, with a solver from PyPI. `target/proof.json` is its certificate, which names the
//! bytes by their hash.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::clients::python::Python;
use crate::command::command;
use crate::repo::Repo;
use crate::step::Step;

/// Proves a program, the built guard unless another file is named, and writes the certificate.
pub fn run(repo: &Repo, program: Option<&Path>) -> Result<()> {
    let program = match program {
        Some(program) => std::path::absolute(program)
            .with_context(|| format!("{} is no path", program.display()))?,
        None => repo.program("swap_guard"),
    };
    Prover::set_up(repo)?.prove(repo, &program, &repo.target().join("proof.json"))
}

/// Tests the prover itself: against the chain's machine, and with what it must not take for proved.
pub fn test(repo: &Repo) -> Result<()> {
    Prover::set_up(repo)?.test(repo)
}

/// The prover with its interpreter and packages.
struct Prover {
    interpreter: PathBuf,
    room: PathBuf,
}

impl Prover {
    fn set_up(repo: &Repo) -> Result<Self> {
        let room = repo.root().join("tests/proof");
        let interpreter = Python::find(repo)?.environment(repo, &room)?;
        Ok(Self { interpreter, room })
    }

    fn command(&self, repo: &Repo, program: &Path, certificate: &Path) -> Command {
        let mut run = self.python(repo, "guard_proof");
        run.arg("--program").arg(program);
        run.arg("--certificate").arg(certificate);
        run
    }

    fn python(&self, repo: &Repo, module: &str) -> Command {
        let mut run = command(repo, &self.interpreter);
        // No compiled files beside the sources.
        run.current_dir(&self.room).args(["-B", "-m", module]);
        run
    }

    fn test(&self, repo: &Repo) -> Result<()> {
        let step = Step::begin(
            repo,
            "proof-tests",
            "Testing the prover of the guard",
            "it must end with an error where it does not understand something",
            "15 s",
        )?;
        let mut run = self.python(repo, "unittest");
        step.run(run.args([
            "discover",
            "--start-directory",
            "tests",
            "--top-level-directory",
            ".",
        ]))?;
        step.done();
        Ok(())
    }

    fn prove(&self, repo: &Repo, program: &Path, certificate: &Path) -> Result<()> {
        let step = Step::begin(
            repo,
            "proof",
            "Proving the guard",
            "users trust it with their money: its bytes are executed on every input at once",
            "five minutes",
        )?;
        let mut run = self.command(repo, program, certificate);
        let (status, _) = step.run_in_full_view(&mut run)?;
        if !status.success() {
            bail!("the guard is not proved, see the output above");
        }
        step.done();
        println!("==> Wrote {}", repo.shown(certificate));
        Ok(())
    }
}
