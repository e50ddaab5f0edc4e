//! Clock of a process, set apart from the machine's by libfaketime, which is loaded before the process.
//!
//! It stands for a host whose time is set by hand or by a time server. It is stricter in that it jumps by an hour at once, where
//! time servers correct by degrees.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use tokio::process::Command;

/// Where Debian's package `libfaketime` puts it: a folder per architecture lies between.
const LIBRARIES: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// A clock. What a process measures durations by, the monotonic clock, goes on as ever, as on a machine whose time is set.
#[derive(Clone, Debug)]
pub struct Clock {
    library: PathBuf,
    /// How far it is from the machine's; read anew every second.
    file: PathBuf,
}

impl Clock {
    /// A clock that is right, and is set by a file of this name.
    ///
    /// # Errors
    /// When the library is missing, or the file cannot be written.
    pub fn new(file: &Path) -> anyhow::Result<Self> {
        let folders = fs::read_dir(LIBRARIES)?.filter_map(|entry| Some(entry.ok()?.path()));
        let library = folders.map(|folder| folder.join(LIBRARY));
        let library = library.into_iter().find(|path| path.is_file());
        let clock = Self {
            library: library.with_context(|| {
                format!(
                    "{LIBRARY} is nowhere under {LIBRARIES}: install the Debian package libfaketime, or leave out clock-jump"
                )
            })?,
            file: file.to_owned(),
        };
        clock.set(0)?;
        Ok(clock)
    }

    /// Sets it that far from the machine's.
    ///
    /// # Errors
    /// When its file cannot be written.
    pub fn set(&self, seconds: i64) -> io::Result<()> {
        // Exchanged as a whole, since it is read at any time.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{seconds:+}\n"))?;
        fs::rename(&new, &self.file)
    }

    /// Lets a command have this clock.
    pub fn apply(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            // A file that is read at every question would cost more than all else that a process does.
            .env("FAKETIME_CACHE_DURATION", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
}
