//! Working folder of a localnet: keeps what its processes write, under a lock while it runs.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// A localnet's folder, held under a lock while it runs.
#[derive(Debug)]
pub struct WorkDir {
    root: PathBuf,
    _lock: File,
}

/// Why a folder cannot be used.
#[derive(Debug, Error)]
pub enum WorkDirError {
    /// Another localnet holds it.
    #[error("another localnet runs in {0}; stop it or give --dir another folder")]
    InUse(PathBuf),
    /// It cannot be made or emptied.
    #[error("cannot prepare {path}: {source}")]
    Prepare {
        /// The folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

impl WorkDir {
    /// Makes the folder, locks it and removes what an earlier run left.
    ///
    /// # Errors
    /// [`WorkDirError`].
    pub fn open(root: &Path) -> Result<Self, WorkDirError> {
        let failed = |source| WorkDirError::Prepare {
            path: root.to_owned(),
            source,
        };
        fs::create_dir_all(root).map_err(failed)?;
        // Children run with absolute paths, whatever folder this process was started in.
        let root = root.canonicalize().map_err(failed)?;
        let lock = File::create(root.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(WorkDirError::InUse(root)),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let dir = Self { root, _lock: lock };
        dir.remove_chain().map_err(failed)?;
        for suffix in ["", "-wal", "-shm"] {
            let mut name = dir.database().into_os_string();
            name.push(suffix);
            remove_if_present(fs::remove_file(name)).map_err(failed)?;
        }
        Ok(dir)
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The validator's ledger.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.root.join("ledger")
    }

    /// Account files for genesis.
    #[must_use]
    pub fn accounts(&self) -> PathBuf {
        self.root.join("accounts")
    }

    /// Configuration of the Geyser plugin.
    #[must_use]
    pub fn plugin_config(&self) -> PathBuf {
        self.root.join("geyser-plugin.json5")
    }

    /// Configuration of Sluice.
    #[must_use]
    pub fn sluice_config(&self) -> PathBuf {
        self.root.join("sluice.toml")
    }

    /// Sluice's database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.root.join("sluice.db")
    }

    /// Key pair of the demo wallet, in the form that Solana's tools read.
    #[must_use]
    pub fn wallet(&self) -> PathBuf {
        self.root.join("wallet.json")
    }

    /// Output of the validator.
    #[must_use]
    pub fn validator_log(&self) -> PathBuf {
        self.root.join("validator.log")
    }

    /// Output of Sluice.
    #[must_use]
    pub fn sluice_log(&self) -> PathBuf {
        self.root.join("sluice.log")
    }

    /// Removes the chain. Logs, configuration and database stay, for a reader who wants to know what
    /// happened.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn remove_chain(&self) -> io::Result<()> {
        for folder in [self.ledger(), self.accounts()] {
            remove_if_present(fs::remove_dir_all(folder))?;
        }
        Ok(())
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // The next run removes what could not be removed now.
        let _ = self.remove_chain();
    }
}

fn remove_if_present(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_localnet_per_folder() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let first = WorkDir::open(folder.path()).expect("the folder is free");
        assert!(matches!(
            WorkDir::open(folder.path()),
            Err(WorkDirError::InUse(_))
        ));
        drop(first);
        assert!(WorkDir::open(folder.path()).is_ok());
    }

    #[test]
    fn what_an_earlier_run_left_is_removed() {
        let folder = tempfile::tempdir().expect("temporary folder");
        fs::create_dir_all(folder.path().join("ledger/rocksdb")).expect("temporary folder");
        fs::write(folder.path().join("sluice.db-wal"), "old").expect("temporary file");
        let dir = WorkDir::open(folder.path()).expect("the folder is free");
        assert!(!dir.ledger().exists());
        assert!(!dir.root().join("sluice.db-wal").exists());
    }
}
