//! `prove`: shows that the compiled guard keeps its promises, by executing its bytes on every input at once.
//!
//! The prover is `tests/proof`, in Python, with a solver from PyPI. `proof.json` is its certificate; it names the bytes by
//! their hash, and is committed for those that the upstream toolchain builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::clients::python::Python;
use crate::command::command;
use crate::output::say;
use crate::repo::Repo;
use crate::sbf;
use crate::step::Step;

/// What the prover ends with when a certificate is not of the program, or was made by another prover.
const NOT_CURRENT: i32 = 3;

/// How many recorded inputs a test run executes once more, a tenth of a second each; the folder has thousands.
const RECORDED_IN_TESTS: &str = "200";

/// How a certificate stands to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Current,
    Outdated,
}

/// Proves a program, and writes the certificate; for another file than the built guard, beside the build's logs.
pub fn run(repo: &Repo, program: Option<&Path>) -> Result<()> {
    let prover = Prover::set_up(repo)?;
    match program {
        Some(program) => {
            let path = std::path::absolute(program)
                .with_context(|| format!("{} is no path", program.display()))?;
            prover.prove(repo, &path, &aside(repo))
        }
        None => prover.prove(repo, &repo.program("swap_guard"), &committed(repo)),
    }
}

/// Fails when the built guard is not the one of the committed certificate, once it was proved again.
///
/// The certificate is of the upstream toolchain's bytes: the official one makes others of the same source.
pub fn check(repo: &Repo) -> Result<()> {
    if sbf::official::is_there() {
        say!("    not compared: the certificate is of the other toolchain's bytes");
        return Ok(());
    }
    let prover = Prover::set_up(repo)?;
    let guard = repo.program("swap_guard");
    let certificate = committed(repo);
    if prover.standing(repo, &guard, &certificate)? == Standing::Current {
        return Ok(());
    }
    prover.prove(repo, &guard, &certificate)?;
    bail!(
        "{} was of another guard or another prover; the new one is proved and written, commit it",
        repo.shown(&certificate)
    )
}

/// Tests the prover itself: against the chain's machine, and with what it must not take for proved.
pub fn test(repo: &Repo) -> Result<()> {
    Prover::set_up(repo)?.test(repo)
}

/// Executes what the tests sent to the guard in the prover's machine as well.
pub fn test_recorded(repo: &Repo) -> Result<()> {
    if sbf::official::is_there() {
        say!(
            "    recorded inputs are not executed: the prover's machine is of the other toolchain's bytes"
        );
        return Ok(());
    }
    Prover::set_up(repo)?.test_recorded(repo)
}

/// Changes the guard in every small way, and writes of each change whether it is noticed.
pub fn mutants(repo: &Repo, minutes: u32) -> Result<()> {
    Prover::set_up(repo)?.try_mutants(repo, minutes)
}

/// An empty folder for what the tests send to the guard, of which the prover's machine executes a part once more.
pub fn recorded_inputs(repo: &Repo) -> Result<PathBuf> {
    let folder = repo.target().join("recorded-inputs");
    if folder.is_dir() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn committed(repo: &Repo) -> PathBuf {
    repo.root().join("proof.json")
}

/// Where the certificate of a program stands that is not the committed one's.
fn aside(repo: &Repo) -> PathBuf {
    repo.target().join("proof.json")
}

/// The prover with its interpreter and packages.
struct Prover {
    interpreter: PathBuf,
    room: PathBuf,
}

/// The prover's sources and the lock file of what it is written with.
pub fn room(repo: &Repo) -> PathBuf {
    repo.root().join("tests/proof")
}

impl Prover {
    fn set_up(repo: &Repo) -> Result<Self> {
        let room = room(repo);
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
            "half a minute",
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

    fn test_recorded(&self, repo: &Repo) -> Result<()> {
        let folder = repo.target().join("recorded-inputs");
        let step = Step::begin(
            repo,
            "proof-recorded",
            "Executing what the tests sent to the guard in the prover's machine",
            "it must do what the chain's own machine does",
            "half a minute",
        )?;
        let mut run = self.python(repo, "trials");
        run.arg("--program").arg(repo.program("swap_guard"));
        run.arg("--recorded").arg(folder);
        step.run(run.args(["--most", RECORDED_IN_TESTS]))?;
        step.done();
        Ok(())
    }

    fn try_mutants(&self, repo: &Repo, minutes: u32) -> Result<()> {
        let step = Step::begin(
            repo,
            "proof-mutants",
            "Trying mutants of the guard",
            "a change of its bytes that neither trials nor the proof notice would be a hole in both",
            "an hour on a core of its own, or as long as is asked for",
        )?;
        let table = self.room.join("mutants.tsv");
        let mut run = self.python(repo, "mutants");
        run.arg("--program").arg(repo.program("swap_guard"));
        run.arg("--table").arg(&table);
        run.arg("--minutes").arg(minutes.to_string());
        let (status, _) = step.run_in_full_view(&mut run)?;
        say!("==> Wrote {}", repo.shown(&table));
        if !status.success() {
            bail!("some mutants are not settled, see the output above");
        }
        step.done();
        Ok(())
    }

    fn prove(&self, repo: &Repo, program: &Path, certificate: &Path) -> Result<()> {
        let step = Step::begin(
            repo,
            "proof",
            "Proving the guard",
            "users trust it with their money: its bytes are executed on every input at once",
            "two minutes on a core of its own",
        )?;
        let mut run = self.command(repo, program, certificate);
        let (status, _) = step.run_in_full_view(&mut run)?;
        if !status.success() {
            bail!("the guard is not proved, see the output above");
        }
        step.done();
        say!("==> Wrote {}", repo.shown(certificate));
        Ok(())
    }

    fn standing(&self, repo: &Repo, program: &Path, certificate: &Path) -> Result<Standing> {
        let mut run = self.command(repo, program, certificate);
        let status = run
            .arg("--check")
            .status()
            .context("cannot run the prover")?;
        standing_of(status.code())
    }
}

fn standing_of(code: Option<i32>) -> Result<Standing> {
    match code {
        Some(0) => Ok(Standing::Current),
        Some(NOT_CURRENT) => Ok(Standing::Outdated),
        _ => bail!("the prover could not compare the certificate with the guard"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_says_nothing_of_the_certificate_is_an_error() {
        assert_eq!(standing_of(Some(0)).expect("known"), Standing::Current);
        assert_eq!(standing_of(Some(3)).expect("known"), Standing::Outdated);
        assert!(standing_of(Some(1)).is_err());
        assert!(standing_of(None).is_err());
    }
}
