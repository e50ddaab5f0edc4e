//! Step: one long piece of work that says what it does and why, shows life, keeps the whole output.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::show;
use crate::output::{self, say};
use crate::repo::Repo;

/// Between two signs of life where no terminal can be redrawn. Long enough not to flood a log, short enough that no
/// reader takes the step for dead.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// Between two redraws of the status line of a terminal.
const REDRAW: Duration = Duration::from_millis(250);

/// Why and how long are printed once a step has taken this long: a step that finds everything done stays one line.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How long output may go on after the child has ended. A grandchild that keeps the pipe open must not hang the step.
const DRAIN: Duration = Duration::from_secs(2);

/// Lines of output repeated when the child fails. Enough for a compiler error with its notes.
const TAIL_LINES: usize = 60;

/// Columns of the status line, so that it does not wrap on an 80-column terminal.
const STATUS_COLUMNS: usize = 75;

/// Columns of the bar in it.
const BAR_COLUMNS: usize = 16;

/// A running step.
pub struct Step {
    why: String,
    takes: String,
    /// How long it took last time, or else by `takes`.
    expected: Option<Duration>,
    log_path: PathBuf,
    log: RefCell<File>,
    started: Instant,
    explained: Cell<bool>,
}

/// What the reader sees of a child's output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Status,
    Lines,
}

impl Step {
    /// Announces a step. `log` names its log file; `takes` reads after "about", for example "80 s on two cores, once".
    pub fn begin(repo: &Repo, log: &str, what: &str, why: &str, takes: &str) -> Result<Self> {
        let (log_path, log) = create_log(repo, log)?;
        say!("==> {what}");
        let last = fs::read_to_string(seconds_path(&log_path)).ok();
        let last = last.and_then(|text| text.trim().parse().ok());
        Ok(Self {
            expected: last.map(Duration::from_secs).or_else(|| estimate(takes)),
            why: why.to_owned(),
            takes: takes.to_owned(),
            log_path,
            log: RefCell::new(log),
            started: Instant::now(),
            explained: Cell::new(false),
        })
    }

    /// Prints why and how long right away, for work that is known to be due.
    pub fn explain(&self) {
        if !self.explained.replace(true) {
            say!("    why:   {}", self.why);
            say!("    takes: about {}", self.takes);
        }
    }

    /// Runs a command whose success is needed; its output goes to the log, a sign of life to the reader.
    pub fn run(&self, command: &mut Command) -> Result<()> {
        let (status, lines) = self.spawn(command, Show::Status)?;
        self.require(command, status, &lines)
    }

    /// Runs a command whose output the reader wants to see, and whose failure the caller judges.
    pub fn run_in_full_view(&self, command: &mut Command) -> Result<(ExitStatus, Vec<String>)> {
        self.explain();
        self.spawn(command, Show::Lines)
    }

    /// Runs a command out of view whose failure the caller judges.
    pub fn run_to_its_end(&self, command: &mut Command) -> Result<ExitStatus> {
        let (status, _) = self.spawn(command, Show::Status)?;
        Ok(status)
    }

    /// Runs a command whose success is needed, out of view, and returns its lines.
    pub fn read(&self, command: &mut Command) -> Result<Vec<String>> {
        let (status, lines) = self.spawn(command, Show::Status)?;
        self.require(command, status, &lines)?;
        Ok(lines)
    }

    /// Closes the step with the time it took.
    pub fn done(self) -> Duration {
        let elapsed = self.started.elapsed();
        say!("    done in {}", human(elapsed));
        // The next run expects as long; where that cannot be kept, it goes by the estimate.
        let _ = fs::write(seconds_path(&self.log_path), elapsed.as_secs().to_string());
        elapsed
    }

    fn require(&self, command: &Command, status: ExitStatus, lines: &[String]) -> Result<()> {
        if status.success() {
            return Ok(());
        }
        let from = lines.len().saturating_sub(TAIL_LINES);
        say!("    the last lines of its output:");
        for line in lines.iter().skip(from) {
            say!("    | {line}");
        }
        bail!(
            "`{}` failed ({status}); the whole output is in {}",
            show(command),
            self.log_path.display()
        )
    }

    fn spawn(&self, command: &mut Command, view: Show) -> Result<(ExitStatus, Vec<String>)> {
        self.record(&format!("$ {}", show(command)))?;
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{}`", show(command)))?;
        let (sender, receiver) = mpsc::channel();
        read_lines(child.stdout.take(), sender.clone());
        read_lines(child.stderr.take(), sender);
        let lines = self.follow(&mut child, &receiver, view)?;
        let status = child.wait().context("cannot wait for the command")?;
        Ok((status, lines))
    }

    fn follow(
        &self,
        child: &mut Child,
        received: &Receiver<String>,
        view: Show,
    ) -> Result<Vec<String>> {
        let terminal = view == Show::Status && output::is_terminal();
        let shows_life = view == Show::Status && !output::is_kept();
        let mut lines = VecDeque::new();
        let mut ended = None;
        let mut last_beat = Instant::now();
        loop {
            match received.recv_timeout(REDRAW) {
                Ok(line) => {
                    self.record(&line)?;
                    if view == Show::Lines {
                        say!("    {line}");
                    }
                    lines.push_back(line);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let has_ended = child
                        .try_wait()
                        .context("cannot ask whether the command has ended")?
                        .is_some();
                    if has_ended && ended.get_or_insert_with(Instant::now).elapsed() > DRAIN {
                        break;
                    }
                }
            }
            if self.started.elapsed() > PATIENCE {
                self.explain();
            }
            let due = if terminal { REDRAW } else { HEARTBEAT };
            if shows_life && self.explained.get() && last_beat.elapsed() >= due {
                last_beat = Instant::now();
                let latest = lines.back().map_or("", String::as_str);
                self.show_status(terminal, latest);
            }
        }
        if terminal {
            output::redraw("");
        }
        Ok(lines.into())
    }

    fn show_status(&self, terminal: bool, latest: &str) {
        let status = status(self.started.elapsed(), self.expected, terminal);
        let room = STATUS_COLUMNS.saturating_sub(status.chars().count());
        let text: String = latest.trim().chars().take(room).collect();
        if terminal {
            output::redraw(&format!("    {status} {text}"));
        } else {
            say!("    {status} {text}");
        }
    }

    fn record(&self, line: &str) -> Result<()> {
        writeln!(self.log.borrow_mut(), "{line}")
            .with_context(|| format!("cannot write {}", self.log_path.display()))
    }
}

/// An empty log of this name, where all logs are, and its path.
pub fn create_log(repo: &Repo, name: &str) -> Result<(PathBuf, File)> {
    let folder = repo.logs();
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{name}.log"));
    let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok((path, log))
}

/// Where the time that a step took is kept, beside its log.
fn seconds_path(log: &Path) -> PathBuf {
    log.with_extension("seconds")
}

/// The duration at the beginning of an estimate, such as "2 minutes from nothing"; `None` where it begins with none.
fn estimate(takes: &str) -> Option<Duration> {
    const WORDS: [(&str, u64); 4] = [("a", 1), ("one", 1), ("two", 2), ("three", 3)];
    let mut words = takes.split(|c: char| !c.is_ascii_alphanumeric());
    let first = words.next()?;
    if takes.starts_with("half a minute") {
        return Some(Duration::from_secs(30));
    }
    let known = WORDS.iter().find(|(word, _)| *word == first);
    let count = known.map(|(_, count)| *count).or(first.parse().ok())?;
    let unit = match words.next()? {
        "minute" | "minutes" => 60,
        "s" | "second" | "seconds" => 1,
        _ => return None,
    };
    Some(Duration::from_secs(count.saturating_mul(unit)))
}

/// How far a step is that is expected to take so long: on a terminal with a bar, elsewhere in words alone.
fn status(elapsed: Duration, expected: Option<Duration>, terminal: bool) -> String {
    let taken = human(elapsed);
    let left = expected.and_then(|expected| expected.checked_sub(elapsed));
    let (Some(expected), Some(left)) = (expected, left) else {
        return format!("[{taken:>7}]");
    };
    let left = human(Duration::from_secs(left.as_secs().saturating_add(1)));
    if !terminal {
        return format!("[{taken:>7}, about {left} left]");
    }
    let columns = u128::try_from(BAR_COLUMNS).unwrap_or(0);
    let full = (elapsed.as_millis() * columns).checked_div(expected.as_millis());
    let full = full.and_then(|full| usize::try_from(full).ok());
    let full = full.map_or(BAR_COLUMNS, |full| full.min(BAR_COLUMNS));
    let (full, empty) = (
        "=".repeat(full),
        " ".repeat(BAR_COLUMNS.saturating_sub(full)),
    );
    format!("[{taken:>7}] [{full}{empty}] about {left} left:")
}

/// Sends every line of a pipe, from a thread of its own. Of a line that was redrawn in place only the last state counts.
fn read_lines(pipe: Option<impl Read + Send + 'static>, sender: Sender<String>) {
    let Some(pipe) = pipe else { return };
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while reader
            .read_until(b'\n', &mut bytes)
            .is_ok_and(|read| read > 0)
        {
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_end_matches(['\n', '\r']);
            let line = line.rsplit('\r').next().unwrap_or(line);
            if sender.send(line.to_owned()).is_err() {
                return;
            }
            bytes.clear();
        }
    });
}

/// A duration as people say it: `0.4 s`, `12 s`, `3 m 05 s`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds >= 60 {
        format!("{} m {:02} s", seconds / 60, seconds % 60)
    } else if seconds >= 10 {
        format!("{seconds} s")
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str) -> (PathBuf, Step) {
        let root = std::env::temp_dir().join(format!("xtask-step-{name}-{}", std::process::id()));
        let repo = Repo::at(root.clone());
        let step = Step::begin(&repo, name, "a test step", "testing", "no time");
        (root, step.expect("the temporary folder is writable"))
    }

    #[test]
    fn a_status_has_the_time_left_and_on_a_terminal_a_bar() {
        let [elapsed, expected] = [30, 120].map(Duration::from_secs);
        let plain = status(elapsed, Some(expected), false);
        assert_eq!(plain, "[   30 s, about 1 m 31 s left]");
        let bar = status(elapsed, Some(expected), true);
        assert_eq!(bar, "[   30 s] [====            ] about 1 m 31 s left:");
        // What takes longer than it was expected to, or is of unknown length, promises nothing.
        assert_eq!(status(expected, Some(elapsed), true), "[2 m 00 s]");
        assert_eq!(status(elapsed, None, false), "[   30 s]");
    }

    #[test]
    fn an_estimate_begins_with_a_duration() {
        let seconds = |takes| estimate(takes).map(|estimate| estimate.as_secs());
        assert_eq!(seconds("2 minutes from nothing"), Some(120));
        assert_eq!(seconds("a minute"), Some(60));
        assert_eq!(seconds("half a minute"), Some(30));
        assert_eq!(seconds("30 s from nothing"), Some(30));
        assert_eq!(seconds("two minutes on a core of its own"), Some(120));
        for unknown in ["minutes", "some minutes", "a few minutes", "no time", ""] {
            assert_eq!(seconds(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_step_expects_to_take_as_long_as_last_time() {
        let (root, first) = step("again");
        assert_eq!(first.expected, None);
        first.done();
        let (_, second) = step("again");
        assert_eq!(second.expected, Some(Duration::ZERO));
        fs::remove_dir_all(root).expect("its folder is there");
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn durations_read_naturally() {
        assert_eq!(human(Duration::from_millis(440)), "0.4 s");
        assert_eq!(human(Duration::from_millis(12_900)), "12 s");
        assert_eq!(human(Duration::from_secs(185)), "3 m 05 s");
    }

    #[test]
    fn keeps_both_streams_in_the_log() {
        let (root, step) = step("log");
        let lines = step.read(&mut shell("echo out; echo err >&2"));
        let mut lines = lines.expect("the script succeeds");
        lines.sort();
        assert_eq!(lines, ["err", "out"]);
        let log = fs::read_to_string(root.join("target/xtask-logs/log.log"));
        let log = log.expect("the log was written");
        assert!(log.contains("out\n") && log.contains("err\n"), "{log}");
        fs::remove_dir_all(root).expect("the folder is ours");
    }

    #[test]
    fn a_failing_command_fails_the_step_and_names_the_log() {
        let (root, step) = step("failing");
        let error = step.run(&mut shell("exit 3")).expect_err("status 3");
        let text = error.to_string();
        assert!(text.contains("exit status: 3"), "{text}");
        assert!(text.contains("failing.log"), "{text}");
        fs::remove_dir_all(root).expect("the folder is ours");
    }

    #[test]
    fn a_line_redrawn_in_place_keeps_its_last_state() {
        let (root, step) = step("redrawn");
        let lines = step.read(&mut shell(r"printf '10%%\r50%%\r100%%\r\n'"));
        assert_eq!(lines.expect("the script succeeds"), ["100%"]);
        fs::remove_dir_all(root).expect("the folder is ours");
    }

    #[test]
    fn a_grandchild_that_keeps_the_pipe_open_does_not_hang_the_step() {
        let (root, step) = step("grandchild");
        let started = Instant::now();
        step.run(&mut shell("sleep 90 & exit 0"))
            .expect("the shell itself succeeds");
        assert!(started.elapsed() < Duration::from_secs(60));
        fs::remove_dir_all(root).expect("the folder is ours");
    }
}
