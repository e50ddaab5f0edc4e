//! The `sluice-localnet` binary, run as a person runs it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use sluice_localnet::artifacts::beside_this_executable;
use tempfile::TempDir;

/// Pause between two looks at a running binary.
const POLL: Duration = Duration::from_millis(50);

/// A run of `sluice-localnet` in a folder of its own, which is removed after it.
pub struct Run {
    child: Child,
    folder: TempDir,
}

/// How a run ended.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn start(arguments: &[&str], environment: &[(&str, &Path)]) -> anyhow::Result<Self> {
        let binary = beside_this_executable("sluice-localnet");
        ensure!(
            binary.is_file(),
            "{} does not exist; `cargo xtask test` builds it",
            binary.display()
        );
        let folder = tempfile::tempdir()?;
        let child = Command::new(binary)
            .args(arguments)
            .arg("--dir")
            .arg(folder.path())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(File::create(folder.path().join("stdout"))?)
            .stderr(File::create(folder.path().join("stderr"))?)
            .spawn()?;
        Ok(Self { child, folder })
    }

    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.child.id())?;
        kill(Pid::from_raw(id), signal)?;
        Ok(())
    }

    /// Waits until `text` stands in its output, and returns the whole output.
    pub fn wait_for(&mut self, text: &str, patience: Duration) -> anyhow::Result<String> {
        let begun = Instant::now();
        loop {
            let stdout = self.output("stdout")?;
            if stdout.contains(text) {
                return Ok(stdout);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}: {}", self.output("stderr")?);
            }
            ensure!(begun.elapsed() < patience, "no {text:?} in: {stdout}");
            std::thread::sleep(POLL);
        }
    }

    /// Waits until it ends by itself.
    pub fn end(mut self, patience: Duration) -> anyhow::Result<Ended> {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            ensure!(
                begun.elapsed() < patience,
                "it did not end within {patience:?}: {}",
                self.output("stdout")?
            );
            std::thread::sleep(POLL);
        };
        Ok(Ended {
            status,
            stdout: self.output("stdout")?,
            stderr: self.output("stderr")?,
        })
    }

    fn output(&self, name: &str) -> anyhow::Result<String> {
        let path: PathBuf = self.folder.path().join(name);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // A test that failed half-way: the death signal takes the children along.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
