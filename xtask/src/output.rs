//! Output: what this program says, on standard output or kept for whoever asks for it.
//!
//! Work that runs beside other work is kept silent, so that what each says stands together in the log.

use std::cell::RefCell;
use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};

thread_local! {
    /// What this thread has said since its words are kept.
    static KEPT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Says a line, as `println!` does, where it is to be said.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::output::line(format_args!($($words)*))
    };
}
pub(crate) use say;

/// Says a line; `say!` is how it is called.
#[expect(
    clippy::print_stdout,
    reason = "everything that this program says is said here"
)]
pub fn line(words: Arguments<'_>) {
    KEPT.with_borrow_mut(|kept| match kept {
        Some(kept) => {
            kept.push_str(&words.to_string());
            kept.push('\n');
        }
        None => println!("{words}"),
    });
}

/// Does work on this thread, and returns all it says beside its value.
pub fn kept<T>(work: impl FnOnce() -> T) -> (T, String) {
    KEPT.set(Some(String::new()));
    let value = work();
    (value, KEPT.take().unwrap_or_default())
}

/// Whether what this thread says is read only when its work is done: signs of life are of no use there.
pub fn is_kept() -> bool {
    KEPT.with_borrow(Option::is_some)
}

/// Whether what this thread says is seen at once, in a window whose last line can be written anew.
pub fn is_terminal() -> bool {
    !is_kept() && io::stdout().is_terminal()
}

/// Writes the last line of a terminal anew. A terminal that is gone is no reason to stop the work.
pub fn redraw(text: &str) {
    let mut terminal = io::stdout().lock();
    let _ = write!(terminal, "\r\x1b[2K{text}").and_then(|()| terminal.flush());
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn each_thread_keeps_what_it_says_itself() {
        let ((), said) = kept(|| {
            say!("one {}", 1);
            let other = thread::spawn(|| kept(|| say!("of another thread")));
            let ((), other) = other.join().expect("it ends");
            assert_eq!(other, "of another thread\n");
            say!("two");
        });
        assert_eq!(said, "one 1\ntwo\n");
        assert!(!is_kept(), "it is kept for good");
    }
}
