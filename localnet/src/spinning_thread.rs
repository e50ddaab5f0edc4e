//! Spinning thread: has the validator's transaction scheduler give way to whoever needs the processor.
//!
//! The only validator of a chain is always its leader, and a leader's scheduler polls for transactions without ever sleeping:
//! one processor, and on a machine of two every second one, is taken from all else that runs there. The kernel gives it what
//! is left instead, where other threads want to run.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Name of the thread (`banking_stage.rs` of `solana-core`).
const NAME: &str = "solBnkTxSched";

/// Its niceness. It still gets about a tenth of a processor that all want, so that a transaction waits for milliseconds only; at
/// the lowest priority it would be as much as a slot.
const NICENESS: &str = "10";

/// Sets the niceness of a thread by its number. Part of Debian's essential packages, and in the same place on every Linux.
const RENICE: &str = "/usr/bin/renice";

/// Has that thread of process `pid` give way, where there is one and the system tells of threads. Without it everything works,
/// but slower.
pub(crate) fn give_way(pid: i32) {
    for thread in threads(pid).unwrap_or_default() {
        if is_named(&thread, NAME) {
            lower(&thread);
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

fn lower(thread: &Path) {
    let Some(number) = thread.file_name() else {
        return;
    };
    // Its only output is what the niceness was.
    let _ = Command::new(RENICE)
        .args(["-n", NICENESS, "-p"])
        .arg(number)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    /// Place of the niceness in `stat`, counted behind the name in parentheses.
    const PLACE: usize = 16;

    fn niceness(thread: &Path) -> String {
        let stat = fs::read_to_string(thread.join("stat")).expect("a thread of this process");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
        let niceness = fields.split(' ').nth(PLACE).expect("a niceness");
        niceness.to_owned()
    }

    #[test]
    fn only_the_thread_that_spins_gives_way() {
        let threads_end: Vec<mpsc::Sender<()>> = [NAME, "solOther"]
            .map(|name| {
                let (end, ended) = mpsc::channel();
                let waits = move || {
                    let _ = ended.recv();
                };
                let thread = thread::Builder::new().name(name.to_owned()).spawn(waits);
                thread.expect("room for a thread");
                end
            })
            .into();
        let pid = i32::try_from(std::process::id()).expect("a process number");
        let named = |name| {
            let mut all = threads(pid).expect("threads").into_iter();
            all.find(|thread| is_named(thread, name))
        };
        // A thread names itself when it begins.
        while named(NAME).is_none() || named("solOther").is_none() {
            thread::yield_now();
        }
        let before = named("solOther").map(|thread| niceness(&thread));
        give_way(pid);
        assert_eq!(
            named(NAME).map(|thread| niceness(&thread)).as_deref(),
            Some(NICENESS)
        );
        assert_eq!(named("solOther").map(|thread| niceness(&thread)), before);
        drop(threads_end);
    }
}
