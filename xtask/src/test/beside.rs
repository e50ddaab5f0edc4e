//! A second `cargo xtask test` beside this one's longest stage, which waits much of its time and leaves processors idle.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};

use super::Part;
use crate::command::{command, show};
use crate::linted_build;
use crate::nextest::Counts;
use crate::repo::Repo;

/// How far it gives way to tests that wait for each other within deadlines. Not further: its own start validators.
const NICENESS: &str = "5";

/// The run, killed when it is dropped before its end.
pub struct Beside {
    child: Child,
    output: PathBuf,
}

impl Beside {
    /// Starts the tests of these parts; what they print goes into a file.
    pub fn start(repo: &Repo, parts: &[Part]) -> Result<Self> {
        let output = repo.logs().join("test-beside.log");
        let file =
            File::create(&output).with_context(|| format!("cannot write {}", output.display()))?;
        let mut run = command(repo, "nice");
        // By cargo, because a build may have put another program in the place of the running one.
        run.args(["-n", NICENESS, "cargo", "xtask", "test"]);
        run.args(parts.iter().map(|part| part.name()));
        linted_build::hand_on(repo, &mut run);
        println!(
            "==> Beside what follows: {}, its output in {}",
            show(&run),
            repo.shown(&output)
        );
        run.stdout(file.try_clone()?).stderr(file);
        let child = run.stdin(Stdio::null()).spawn();
        let child = child.context("cannot start a run of its own")?;
        Ok(Self { child, output })
    }

    /// Waits for its end, prints what it printed and returns its counts.
    pub fn wait(mut self, repo: &Repo) -> Result<Counts> {
        println!("==> Waiting for the run beside");
        let status = self
            .child
            .wait()
            .context("cannot wait for the run beside")?;
        let text = fs::read_to_string(&self.output)
            .with_context(|| format!("cannot read {}", self.output.display()))?;
        println!("==> What the run beside printed");
        for line in text.lines() {
            println!("    | {line}");
        }
        match text.lines().last().and_then(Counts::of_line) {
            Some(counts) if status.success() || counts.failed > 0 => Ok(counts),
            _ => bail!(
                "the run beside ended with {status}; its output is above and in {}",
                repo.shown(&self.output)
            ),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It has ended already unless this run is given up.
        let _ = self.child.kill();
    }
}
