//! Spinning thread: bounds what the validator's transaction scheduler takes of the processors.
//!
//! The only validator of a chain is always its leader, and a leader's scheduler polls for transactions without ever sleeping:
//! a processor that would be idle, half of a core of which another thread computes, and what others want of a busy one.
//! The kernel gives it a share of each moment instead (`SCHED_DEADLINE` of sched(7)). Where that is not allowed, as it is to
//! root alone, it gives way to whoever wants the processor.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Name of the thread (`banking_stage.rs` of `solana-core`).
const NAME: &str = "solBnkTxSched";

/// Its share, nanoseconds of as many: a tenth of a processor, and a transaction waits for two milliseconds at most.
const RUNTIME: &str = "200000";
const PERIOD: &str = "2000000";

/// Its niceness where it gets no share. It still gets about a tenth of a processor that all want, so that a transaction waits for
/// milliseconds only; at the lowest priority it would be as much as a slot.
const NICENESS: &str = "10";

/// Both are of Debian's essential packages, and in the same place on every Linux.
const CHRT: &str = "/usr/bin/chrt";
const RENICE: &str = "/usr/bin/renice";

/// Bounds that thread of process `pid`, where there is one and the system tells of threads. Without it everything works, but
/// slower.
pub(crate) fn bound(pid: i32) {
    for thread in threads(pid).unwrap_or_default() {
        if is_named(&thread, NAME)
            && let Some(number) = thread.file_name()
            && !get_share(number)
        {
            give_way(number);
        }
    }
}

/// Folders of the threads of a process.
fn threads(pid: i32) -> io::Result<Vec<PathBuf>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))?;
    threads.map(|thread| Ok(thread?.path())).collect()
}

fn is_named(thread: &Path, name: &str) -> bool {
    fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
}

/// Whether the thread of this number has a share now.
fn get_share(thread: &OsStr) -> bool {
    let mut set = Command::new(CHRT);
    set.args(["--deadline", "--sched-runtime", RUNTIME]);
    set.args(["--sched-deadline", PERIOD, "--sched-period", PERIOD]);
    // This policy knows no priorities.
    set.args(["--pid", "0"]).arg(thread);
    succeeds(&mut set)
}

fn give_way(thread: &OsStr) {
    let mut set = Command::new(RENICE);
    succeeds(set.args(["-n", NICENESS, "-p"]).arg(thread));
}

/// What these commands say is why it is not allowed here, or what was before.
fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    /// What a thread is scheduled by: niceness, and policy (`SCHED_DEADLINE` is 6), as proc_pid_stat(5) has them.
    fn scheduling(thread: &Path) -> (String, String) {
        let stat = fs::read_to_string(thread.join("stat")).expect("a thread of this process");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
        let field = |number: usize| {
            // The third field is the first one behind the name.
            let field = fields.split(' ').nth(number - 3);
            field.expect("it has that many").to_owned()
        };
        (field(19), field(41))
    }

    /// Threads of these names that wait until the senders are dropped, in the same order.
    fn waiting(names: [&str; 2]) -> (Vec<mpsc::Sender<()>>, [PathBuf; 2]) {
        let spawn = |name: &str| {
            let (end, ended) = mpsc::channel();
            let waits = move || {
                let _ = ended.recv();
            };
            let thread = thread::Builder::new().name(name.to_owned()).spawn(waits);
            thread.expect("room for a thread");
            end
        };
        let ends = names.iter().map(|name| spawn(name)).collect();
        let pid = i32::try_from(std::process::id()).expect("a process number");
        let find = |name: &str| {
            // A thread names itself when it begins.
            loop {
                let mut all = threads(pid).expect("threads").into_iter();
                if let Some(thread) = all.find(|thread| is_named(thread, name)) {
                    return thread;
                }
                thread::yield_now();
            }
        };
        (ends, names.map(find))
    }

    #[test]
    fn only_the_thread_that_spins_is_bounded() {
        let (ends, [spinning, other]) = waiting([NAME, "solOther"]);
        let before = scheduling(&other);
        bound(i32::try_from(std::process::id()).expect("a process number"));
        let (niceness, policy) = scheduling(&spinning);
        // The second where this may not be asked for.
        assert!(policy == "6" || niceness == NICENESS, "{policy} {niceness}");
        assert_eq!(scheduling(&other), before);
        drop(ends);
    }

    #[test]
    fn without_a_share_it_gives_way() {
        let (ends, [waits, other]) = waiting(["gives way", "does not"]);
        let before = scheduling(&other);
        give_way(waits.file_name().expect("its number"));
        assert_eq!(scheduling(&waits).0, NICENESS);
        assert_eq!(scheduling(&other), before);
        drop(ends);
    }
}
