//! Progress of long work: a bar with the time left on a terminal, a line of the log now and then elsewhere.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    sync::LazyLock,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Pause between two lines of the log where there is no terminal: a reader sees that the work goes on, and no more.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// What a bar shows: the time since the beginning, the bar, the part done, the words.
const TEMPLATE: &str = "{elapsed_precise} [{bar:24}] {percent:>3} % {wide_msg}";

/// The bars of the process, all at the foot of one terminal. Where standard error is none, nothing is drawn.
static BARS: LazyLock<MultiProgress> =
    LazyLock::new(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));

/// Work under way. Its bar is gone when it is dropped.
pub struct Progress {
    bar: ProgressBar,
    on_terminal: bool,
    logged: Instant,
}

impl Default for Progress {
    fn default() -> Self {
        let bar = BARS.add(ProgressBar::no_length());
        // The template is the one above, and a test makes it.
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self {
            bar,
            on_terminal: io::stderr().is_terminal(),
            logged: Instant::now(),
        }
    }
}

impl Progress {
    /// So much of all is done; `words` say it, with the time left.
    pub fn show(&mut self, done: u64, all: u64, words: &impl Display) {
        if self.on_terminal {
            self.bar.set_length(all);
            self.bar.set_position(done);
            self.bar.set_message(words.to_string());
        } else if self.is_line_due(Instant::now()) {
            tracing::info!("{words}");
        }
    }

    /// Whether a line is due, which is then written.
    fn is_line_due(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.logged) >= LOG_INTERVAL;
        if is_due {
            self.logged = now;
        }
        is_due
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        BARS.remove(&self.bar);
    }
}

/// How long work goes on that has done so much of all in this time, should it go on so. `None` while there is nothing to judge by.
#[must_use]
pub fn time_left(done: u64, all: u64, elapsed: Duration) -> Option<Duration> {
    let left = all.saturating_sub(done);
    let millis = elapsed.as_millis().saturating_mul(u128::from(left));
    let millis = millis.checked_div(u128::from(done))?;
    Some(Duration::from_millis(
        u64::try_from(millis).unwrap_or(u64::MAX),
    ))
}

/// Standard error for lines that must not run into a bar: it makes way for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AboveBars;

impl Write for AboveBars {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        BARS.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_time_taken() {
        let taken = Duration::from_secs(30);
        assert_eq!(time_left(0, 100, taken), None);
        assert_eq!(time_left(25, 100, taken), Some(Duration::from_secs(90)));
        assert_eq!(time_left(100, 100, taken), Some(Duration::ZERO));
        assert_eq!(time_left(101, 100, taken), Some(Duration::ZERO));
    }

    #[test]
    fn a_line_is_written_now_and_then() {
        let mut progress = Progress::default();
        let begun = progress.logged;
        let due = [0, 4, 5, 6, 9, 10].map(|seconds| {
            let now = begun + Duration::from_secs(seconds);
            progress.is_line_due(now)
        });
        assert_eq!(due, [false, false, true, false, false, true]);
    }

    #[test]
    fn the_template_of_a_bar_is_one() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
