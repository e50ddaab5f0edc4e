//! `sluice indexer` as a process that is killed and started again, as a supervisor would.

use std::{
    env,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::process::{Child, Command};

use super::clock::Clock;

/// Deadline of one delivery, seconds: the shortest that the configuration allows, because leases are held for it and
/// so are what a killed process had under way.
pub const DEADLINE_SECS: u64 = 1;

/// Pauses between the attempts to deliver a message, seconds. Many short ones: receivers fail more often in these
/// minutes than in a day elsewhere, and none may be given up.
const RETRY_PAUSES_SECS: [u64; 90] = [1; 90];

/// How long a process may take to end after it was asked to: attempts under way may finish, results are recorded.
const ENDING: Duration = Duration::from_secs(60);

/// What it logs once it is past its start.
const STARTED: &str = "the indexer runs";

/// What it logs of a write as the leader that came after another one had taken over.
const REFUSED: &str = "what it wrote as the leader was refused";

/// What the runtime writes when a thread panics.
const PANICKED: &str = "panicked at";

/// Where a binary of this workspace is: beside the running one. Test executables are one folder deeper (`deps/`) than
/// the binaries built with them.
///
/// # Errors
/// When the running executable cannot be found.
pub fn beside_this_executable(name: &str) -> anyhow::Result<PathBuf> {
    let executable = env::current_exe().context("this executable cannot be found")?;
    let mut folders = executable.ancestors().skip(1);
    let folder = folders.find(|folder| !folder.ends_with("deps"));
    Ok(folder.context("this executable has no folder")?.join(name))
}

/// A process and what its supervisor knows of it.
pub struct Process {
    name: String,
    binary: PathBuf,
    config: PathBuf,
    folder: PathBuf,
    /// What its clock is set by.
    clock: Option<Clock>,
    running: Option<Running>,
    starts: u32,
    /// When it is started again, while it does not run.
    pub start_at: Instant,
}

struct Running {
    child: Child,
    since: Instant,
    log: PathBuf,
    /// When it was asked to end.
    stopping: Option<Instant>,
    /// When it is resumed, while it is suspended.
    resume_at: Option<Instant>,
}

/// How a process came to its end by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As it was asked to.
    Asked,
    /// It could not start, for the reason it gave.
    CouldNotStart(String),
    /// In a way that nothing excuses.
    Wrongly(String),
}

impl Process {
    /// A process that keeps its files in `folder` and is due to start now.
    ///
    /// # Errors
    /// When its configuration cannot be written.
    pub fn new(
        number: usize,
        binary: &Path,
        folder: &Path,
        endpoint: &str,
        store: &str,
        clock: Option<Clock>,
    ) -> io::Result<Self> {
        let name = format!("sluice-{number}");
        let config = folder.join(format!("{name}.toml"));
        let text = format!(
            "[chain]\nrpc-url = \"http://127.0.0.1:1\"\n[geyser]\nprobe-limits = false\n[[geyser.endpoints]]\nurl = \"{endpoint}\"\n[store]\n{store}\n\
             [indexer]\nlisten = \"127.0.0.1:0\"\nbackfill-calls-per-second = 0\n[webhooks]\nallow-http-loopback = true\n\
             delivery-timeout-secs = {DEADLINE_SECS}\nretry-pauses-secs = {RETRY_PAUSES_SECS:?}\n"
        );
        fs::write(&config, text)?;
        Ok(Self {
            name,
            binary: binary.to_owned(),
            config,
            folder: folder.to_owned(),
            clock,
            running: None,
            starts: 0,
            start_at: Instant::now(),
        })
    }

    /// How often it was started.
    #[must_use]
    pub fn starts(&self) -> u32 {
        self.starts
    }

    /// Since when it runs and was not asked to end.
    #[must_use]
    pub fn runs_since(&self) -> Option<Instant> {
        let running = self.running.as_ref()?;
        running.stopping.is_none().then_some(running.since)
    }

    /// Starts it when that is due.
    ///
    /// # Errors
    /// When the binary cannot be run.
    pub fn start_if_due(&mut self) -> anyhow::Result<bool> {
        if self.running.is_some() || Instant::now() < self.start_at {
            return Ok(false);
        }
        self.starts += 1;
        let log = self
            .folder
            .join(format!("{}-{}.log", self.name, self.starts));
        let mut command = Command::new(&self.binary);
        if let Some(clock) = &self.clock {
            clock.apply(&mut command);
        }
        let child = command
            .arg("indexer")
            .arg("--config")
            .arg(&self.config)
            // The log is read for what it says of the start.
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {}", self.binary.display()))?;
        self.running = Some(Running {
            child,
            since: Instant::now(),
            log,
            stopping: None,
            resume_at: None,
        });
        Ok(true)
    }

    /// Kills it with SIGKILL; it is started again after `pause`. False when there was nothing to kill, or when it
    /// ended by itself, which [`Process::look`] sees to.
    ///
    /// # Errors
    /// When the system does not let it be killed, or it was panicking.
    pub async fn kill(&mut self, pause: Duration) -> anyhow::Result<bool> {
        let Some(running) = &mut self.running else {
            return Ok(false);
        };
        if running.child.try_wait()?.is_some() {
            return Ok(false);
        }
        running.child.kill().await?;
        let log = fs::read_to_string(&running.log)?;
        anyhow::ensure!(!log.contains(PANICKED), "{} panicked: {log}", self.name);
        fs::remove_file(&running.log)?;
        self.running = None;
        self.start_at = Instant::now() + pause;
        Ok(true)
    }

    /// Asks it to end, with SIGTERM, and once: a supervisor waits then, and a second signal would end it in the middle of
    /// its work.
    ///
    /// # Errors
    /// When the system does not let it be asked.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        if let Some(running) = &mut self.running
            && running.stopping.is_none()
            && let Some(id) = running.child.id()
        {
            running.stopping = Some(Instant::now());
            kill(Pid::from_raw(i32::try_from(id)?), Signal::SIGTERM)?;
        }
        Ok(())
    }

    /// Suspends it with SIGSTOP in the middle of whatever it does; it is resumed after `pause`. False when there was
    /// nothing to suspend.
    ///
    /// # Errors
    /// When the system does not let it be suspended.
    pub fn suspend(&mut self, pause: Duration) -> anyhow::Result<bool> {
        let Some(running) = &mut self.running else {
            return Ok(false);
        };
        let Some(id) = running.child.id().filter(|_| running.resume_at.is_none()) else {
            return Ok(false);
        };
        kill(Pid::from_raw(i32::try_from(id)?), Signal::SIGSTOP)?;
        running.resume_at = Some(Instant::now() + pause);
        Ok(true)
    }

    /// Resumes it, with SIGCONT, when that is due.
    ///
    /// # Errors
    /// When the system does not let it be resumed.
    pub fn resume_if_due(&mut self) -> anyhow::Result<()> {
        if let Some(running) = &mut self.running
            && running.resume_at.is_some_and(|at| at <= Instant::now())
            && let Some(id) = running.child.id()
        {
            kill(Pid::from_raw(i32::try_from(id)?), Signal::SIGCONT)?;
            running.resume_at = None;
        }
        Ok(())
    }

    /// Resumes it now, if it is suspended.
    ///
    /// # Errors
    /// When the system does not let it be resumed.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        if let Some(running) = &mut self.running
            && running.resume_at.is_some()
        {
            running.resume_at = Some(Instant::now());
        }
        self.resume_if_due()
    }

    /// Sets its clock that far from the machine's, whether it runs or not.
    ///
    /// # Errors
    /// When the file of its clock cannot be written.
    pub fn set_clock(&self, seconds: i64) -> io::Result<()> {
        match &self.clock {
            Some(clock) => clock.set(seconds),
            None => Ok(()),
        }
    }

    /// How often it said since its start that a write of a leader was refused. What ended has no log any more.
    #[must_use]
    pub fn refused_writes(&self) -> usize {
        let log = self.running.as_ref().map(|running| &running.log);
        let log = log.and_then(|log| fs::read_to_string(log).ok());
        log.map_or(0, |log| log.matches(REFUSED).count())
    }

    /// Looks whether it ended by itself; it is started again after `pause`.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn look(&mut self, pause: Duration) -> anyhow::Result<Option<Ended>> {
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        let Some(status) = running.child.try_wait()? else {
            let overdue = running
                .stopping
                .is_some_and(|asked| asked.elapsed() > ENDING);
            return Ok(overdue
                .then(|| Ended::Wrongly(format!("{} does not end when asked to", self.name))));
        };
        let log = fs::read_to_string(&running.log)?;
        let ended = how(&self.name, running.stopping.is_some(), status, &log);
        if !matches!(ended, Ended::Wrongly(_)) {
            fs::remove_file(&running.log)?;
        }
        self.running = None;
        self.start_at = Instant::now() + pause;
        Ok(Some(ended))
    }
}

fn how(name: &str, asked: bool, status: ExitStatus, log: &str) -> Ended {
    let before_it_listened_to_signals = asked
        && std::os::unix::process::ExitStatusExt::signal(&status) == Some(Signal::SIGTERM as i32);
    if log.contains(PANICKED) {
        Ended::Wrongly(format!("{name} panicked: {log}"))
    } else if asked && (status.success() || before_it_listened_to_signals) {
        Ended::Asked
    } else if !log.contains(STARTED) {
        Ended::CouldNotStart(log.to_owned())
    } else {
        Ended::Wrongly(format!("{name} ended by itself with {status}: {log}"))
    }
}

#[cfg(test)]
mod tests {
    use std::{io, os::unix::fs::PermissionsExt};

    use tokio::time::sleep;

    use super::*;

    /// Ends some time after the first SIGTERM as it was asked to, and at once at a second one.
    const DRAINS: &str = "#!/bin/sh
trap 'asked=\"$asked.\"; [ \"$asked\" != .. ] || exit 130' TERM
echo 'the indexer runs' >&2
while [ -z \"$asked\" ]; do sleep 0.01; done
sleep 0.2
sleep 0.2
";

    async fn until_it_runs(folder: &Path) -> io::Result<()> {
        while !fs::read_to_string(folder.join("sluice-1-1.log"))?.contains(STARTED) {
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_process_that_takes_its_time_to_end_is_asked_once() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let binary = folder.path().join("drains");
        fs::write(&binary, DRAINS)?;
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755))?;
        let mut process = Process::new(1, &binary, folder.path(), "", "", None)?;
        assert!(process.start_if_due()?);
        until_it_runs(folder.path()).await?;

        process.stop()?;
        sleep(Duration::from_millis(100)).await;
        process.stop()?;

        let ended = loop {
            if let Some(ended) = process.look(Duration::ZERO)? {
                break ended;
            }
            sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(ended, Ended::Asked);
        Ok(())
    }
}
