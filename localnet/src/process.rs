//! Child process in a group of its own, killed with everything it started.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use thiserror::Error;

/// How long a child may take to end after it was asked to, before it is killed. Sluice drains its
/// deliveries in this time; the validator ends at once.
pub const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// How long the kernel may take to end a killed group; only a process stuck in the kernel needs more.
const KILL_DEADLINE: Duration = Duration::from_secs(5);

/// Pause between two looks at a child that is ending.
const POLL: Duration = Duration::from_millis(20);

/// Lines of a dead child's log that are shown.
const TAIL_LINES: usize = 20;

/// A program that puts a death signal on itself before it becomes the real child, so that the child
/// ends even when this process is killed outright and can clean up nothing. Part of util-linux; where
/// it is absent the child runs without that safety net.
const SETPRIV: &str = "/usr/bin/setpriv";

/// A child in a process group of its own. Ended when dropped, a panic included.
#[derive(Debug)]
pub struct OwnedProcess {
    name: &'static str,
    child: Child,
    group: Pid,
    log: PathBuf,
    exited: Option<ExitStatus>,
}

/// How a child ended when it was stopped.
#[derive(Clone, Copy, Debug)]
pub struct Stopped {
    /// Time from the request to the end of the last process of the group.
    pub took: Duration,
    /// Whether it had to be killed.
    pub killed: bool,
}

/// What can go wrong with a child.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("cannot start {name} ({program}): {source}")]
    Start {
        /// Which child.
        name: &'static str,
        /// Its executable.
        program: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// It ended without being stopped.
    #[error("{name} died ({status}); the end of {log}:\n{tail}")]
    Died {
        /// Which child.
        name: &'static str,
        /// Its exit status or signal.
        status: String,
        /// Its log file.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// It is still there after SIGKILL.
    #[error("{name} (process group {group}) is still alive after SIGKILL")]
    Unkillable {
        /// Which child.
        name: &'static str,
        /// Its process group.
        group: i32,
    },
    /// The operating system refused a question about the child.
    #[error("cannot watch {name}: {source}")]
    Watch {
        /// Which child.
        name: &'static str,
        /// Cause.
        source: io::Error,
    },
}

impl OwnedProcess {
    /// Starts a child in its own process group, its output going to `log`. A Ctrl-C in the terminal
    /// therefore reaches this process only, which then stops its children in the right order.
    ///
    /// Must be called from a thread that lives as long as the child is wanted: the death signal is
    /// bound to the thread that starts the child, not to the process.
    ///
    /// # Errors
    /// [`ProcessError::Start`].
    pub fn spawn(
        name: &'static str,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
        environment: &[(&str, &str)],
        log: &Path,
    ) -> Result<Self, ProcessError> {
        let failed = |source| ProcessError::Start {
            name,
            program: program.to_owned(),
            source,
        };
        let output = File::create(log).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        let mut command = with_death_signal(program);
        command
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        let child = command.spawn().map_err(failed)?;
        let group = i32::try_from(child.id())
            .map_err(|_| failed(io::Error::other("process id out of range")))?;
        Ok(Self {
            name,
            child,
            group: Pid::from_raw(group),
            log: log.to_owned(),
            exited: None,
        })
    }

    /// Its process id, which is also that of its group.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.group.as_raw()
    }

    /// Where its output goes.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Confirms that it still runs.
    ///
    /// # Errors
    /// [`ProcessError::Died`] with the end of its log.
    pub fn check(&mut self) -> Result<(), ProcessError> {
        let Some(status) = self.poll()? else {
            return Ok(());
        };
        Err(ProcessError::Died {
            name: self.name,
            status: describe(status),
            log: self.log.clone(),
            tail: tail(&self.log),
        })
    }

    /// Kills it outright, as a crash would, and reaps it.
    ///
    /// # Errors
    /// [`ProcessError::Unkillable`] when it survives.
    pub fn kill(&mut self) -> Result<Stopped, ProcessError> {
        self.end(Duration::ZERO)
    }

    /// Asks it to end, and kills it when it does not within [`STOP_DEADLINE`].
    ///
    /// # Errors
    /// [`ProcessError::Unkillable`] when it survives even that.
    pub fn stop(&mut self) -> Result<Stopped, ProcessError> {
        self.end(STOP_DEADLINE)
    }

    /// Whether any process of its group is left.
    #[must_use]
    pub fn group_is_alive(&self) -> bool {
        kill(Pid::from_raw(-self.group.as_raw()), None).is_ok()
    }

    fn end(&mut self, grace: Duration) -> Result<Stopped, ProcessError> {
        let begun = Instant::now();
        // SIGTERM and not SIGINT: a shell that starts a job in the background makes it ignore SIGINT,
        // and children inherit that.
        if !grace.is_zero() && self.signal_and_wait(Signal::SIGTERM, grace)? {
            return Ok(Stopped {
                took: begun.elapsed(),
                killed: false,
            });
        }
        if self.signal_and_wait(Signal::SIGKILL, KILL_DEADLINE)? {
            return Ok(Stopped {
                took: begun.elapsed(),
                killed: true,
            });
        }
        Err(ProcessError::Unkillable {
            name: self.name,
            group: self.group.as_raw(),
        })
    }

    /// Whether the whole group is gone after the signal. The leader is reaped on the way: while it is
    /// a zombie its group still counts as alive.
    fn signal_and_wait(
        &mut self,
        signal: Signal,
        patience: Duration,
    ) -> Result<bool, ProcessError> {
        let deadline = Instant::now() + patience;
        // The only failure is a group that is gone already, which the loop below sees.
        let _ = killpg(self.group, signal);
        loop {
            if self.poll()?.is_some() && !self.group_is_alive() {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(POLL);
        }
    }

    fn poll(&mut self) -> Result<Option<ExitStatus>, ProcessError> {
        if self.exited.is_none() {
            self.exited = self
                .child
                .try_wait()
                .map_err(|source| ProcessError::Watch {
                    name: self.name,
                    source,
                })?;
        }
        Ok(self.exited)
    }
}

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        if self.exited.is_none() || self.group_is_alive() {
            // Reached on a panic or an early return only: an orderly end has stopped it before.
            let _ = self.kill();
        }
    }
}

fn with_death_signal(program: &Path) -> Command {
    if !Path::new(SETPRIV).is_file() {
        return Command::new(program);
    }
    let mut command = Command::new(SETPRIV);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => match Signal::try_from(signal) {
            Ok(name) => format!("killed by {name}"),
            Err(_) => format!("killed by signal {signal}"),
        },
        (None, None) => "unknown status".to_owned(),
    }
}

fn tail(log: &Path) -> String {
    let text = match fs::read(log) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("(cannot be read: {error})"),
    };
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(TAIL_LINES);
    lines.get(first..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> (OwnedProcess, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let log = folder.path().join("log");
        let process =
            OwnedProcess::spawn("shell", Path::new("/bin/sh"), &["-c", script], &[], &log)
                .expect("a shell can be started");
        (process, folder)
    }

    fn wait_for_log(process: &OwnedProcess, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !tail(process.log()).contains(text) {
            assert!(Instant::now() < deadline, "no {text:?} in the log");
            thread::sleep(POLL);
        }
    }

    #[test]
    fn grandchildren_end_with_the_group() {
        let (mut process, _folder) = shell("sleep 600 & echo started; wait");
        wait_for_log(&process, "started");
        let stopped = process.stop().expect("it ends");
        assert!(!stopped.killed);
        assert!(!process.group_is_alive());
    }

    #[test]
    fn a_child_that_ignores_the_request_is_killed() {
        let (mut process, _folder) = shell("trap '' TERM; echo started; while :; do sleep 1; done");
        wait_for_log(&process, "started");
        let stopped = process.end(Duration::from_millis(200)).expect("it ends");
        assert!(stopped.killed);
        assert!(!process.group_is_alive());
    }

    #[test]
    fn a_child_that_died_is_reported_with_its_last_words() {
        let (mut process, _folder) = shell("echo out of tea; exit 3");
        while process.poll().expect("it can be watched").is_none() {
            thread::sleep(POLL);
        }
        let message = process.check().expect_err("it is dead").to_string();
        assert!(message.contains("exit status 3"), "{message}");
        assert!(message.contains("out of tea"), "{message}");
    }

    #[test]
    fn dropping_ends_the_group() {
        let (process, _folder) = shell("sleep 600 & echo started; wait");
        wait_for_log(&process, "started");
        let group = process.group;
        drop(process);
        assert!(kill(Pid::from_raw(-group.as_raw()), None).is_err());
    }
}
