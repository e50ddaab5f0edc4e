//! Stages beside each other, for such as use one processor: no more at a time than there are, each silent until it has ended.
//!
//! At most one of those that run at once compiles: cargo locks the folder that all workspaces are built in.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::nextest::Counts;
use crate::output::{self, say};
use crate::step::{HEARTBEAT, human};

/// A stage that can run beside others: it writes no file and takes no port that another one does.
pub struct Beside<'a> {
    name: &'static str,
    work: Box<dyn FnOnce() -> Result<Counts> + Send + 'a>,
}

impl<'a> Beside<'a> {
    /// One without tests that are counted.
    pub fn stage(name: &'static str, work: impl FnOnce() -> Result<()> + Send + 'a) -> Self {
        Self::tests(name, || work().map(|()| Counts::default()))
    }

    /// One whose tests are counted.
    pub fn tests(name: &'static str, run: impl FnOnce() -> Result<Counts> + Send + 'a) -> Self {
        Self {
            name,
            work: Box::new(run),
        }
    }

    fn run(self) -> Ended {
        let started = Instant::now();
        let work = AssertUnwindSafe(self.work);
        // One that panics has failed, and the others go on.
        let (outcome, said) = output::kept(|| panic::catch_unwind(work));
        Ended {
            name: self.name,
            outcome: outcome
                .unwrap_or_else(|panic| Err(anyhow!("it panicked: {}", words(&*panic)))),
            took: started.elapsed(),
            said,
        }
    }
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without words")
}

/// A stage that ran beside others, as it ended.
pub struct Ended {
    pub name: &'static str,
    pub outcome: Result<Counts>,
    pub took: Duration,
    said: String,
}

/// Runs them in this order, no more than so many at a time, and returns them in the order in which they ended, each of them
/// printed by then.
pub fn run(all: Vec<Beside<'_>>, at_once: usize) -> Vec<Ended> {
    let names: Vec<_> = all.iter().map(|stage| stage.name).collect();
    say!("==> Side by side: {}", names.join(", "));
    let waiting = Mutex::new(VecDeque::from(all));
    let next = || {
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..at_once.min(names.len()) {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(stage) = next() {
                    // Who receives stays until all have ended.
                    let _ = sender.send(stage.run());
                }
            });
        }
        drop(sender);
        collect(names, &receiver)
    })
}

/// Prints each that ends, and now and then which have not.
fn collect(mut not_ended: Vec<&str>, receiver: &Receiver<Ended>) -> Vec<Ended> {
    let started = Instant::now();
    let mut all = Vec::new();
    loop {
        match receiver.recv_timeout(HEARTBEAT) {
            Ok(ended) => {
                not_ended.retain(|name| *name != ended.name);
                say!("{}", ended.shown());
                all.push(ended);
            }
            Err(RecvTimeoutError::Timeout) => {
                let taken = human(started.elapsed());
                say!("    [{taken:>7}] not ended: {}", not_ended.join(", "));
            }
            Err(RecvTimeoutError::Disconnected) => return all,
        }
    }
}

impl Ended {
    /// Its name, how it ended, and all that it said.
    fn shown(&self) -> String {
        let (name, took) = (self.name, human(self.took));
        let said = self.said.trim_end();
        match &self.outcome {
            Ok(Counts { failed: 0, .. }) => {
                format!("==> Stage \"{name}\" is done after {took}; it said:\n{said}")
            }
            Ok(_) => format!("==> Stage \"{name}\" FAILED after {took}; it said:\n{said}"),
            Err(error) => format!(
                "==> Stage \"{name}\" FAILED after {took}; it said:\n{said}\n    error: {error:#}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Both wait until the other has begun: run one after the other, they would time out.
    #[test]
    fn they_run_at_once_and_what_each_says_stands_together() {
        const LONG: Duration = Duration::from_secs(10);
        let (to_second, from_first) = mpsc::channel();
        let (to_first, from_second) = mpsc::channel();
        let (ended, printed) = output::kept(|| {
            run(
                vec![
                    Beside::stage("first", move || {
                        say!("first begins");
                        to_second.send(())?;
                        from_second.recv_timeout(LONG)?;
                        say!("first ends");
                        Ok(())
                    }),
                    Beside::stage("second", move || {
                        say!("second begins");
                        from_first.recv_timeout(LONG)?;
                        to_first.send(())?;
                        say!("second ends");
                        Err(anyhow!("it is red"))
                    }),
                ],
                2,
            )
        });
        let good = |name| ended.iter().any(|it| it.name == name && it.outcome.is_ok());
        assert!(good("first") && !good("second"), "{printed}");
        assert!(printed.contains("first begins\nfirst ends\n"), "{printed}");
        let whole = "it said:\nsecond begins\nsecond ends\n    error: it is red\n";
        assert!(printed.contains(whole), "{printed}");
        assert!(printed.contains("\"second\" FAILED after"), "{printed}");
    }

    #[test]
    fn no_more_run_at_once_than_may_and_each_in_its_turn() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let begun = Mutex::new(Vec::new());
        let stage = |name| {
            let (now, most, begun) = (&now, &most, &begun);
            Beside::stage(name, move || {
                begun.lock().expect("no panic").push(name);
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(50));
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
        };
        let names = ["a", "b", "c", "d", "e"];
        let (ended, _) = output::kept(|| run(names.map(stage).into(), 2));
        assert_eq!(ended.len(), names.len());
        assert_eq!(most.into_inner(), 2);
        let mut begun = begun.into_inner().expect("no panic");
        assert_eq!(begun.split_off(4), ["e"]);
    }

    #[test]
    fn one_that_panics_has_failed_and_says_so() {
        let (ended, printed) = output::kept(|| {
            run(
                vec![
                    Beside::stage("panics", || {
                        say!("before");
                        panic!("on purpose")
                    }),
                    Beside::stage("other", || Ok(())),
                ],
                1,
            )
        });
        assert_eq!(ended.len(), 2);
        let whole = "it said:\nbefore\n    error: it panicked: on purpose\n";
        assert!(printed.contains(whole), "{printed}");
    }
}
