//! [`DatabaseFile`]: checks that SQLite's file is still where it was opened, and syncs its log.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::task::{JoinHandle, spawn_blocking};

use super::{network_disk::DiskKind, syncs::Syncs};
use crate::StoreError;

/// The file that was opened, as the file system identifies it.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    syncs: Arc<Syncs>,
}

impl DatabaseFile {
    /// Remembers which file `path` names now.
    pub(super) fn identify(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            syncs: Arc::default(),
        })
    }

    /// Where it was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `path` still names that file. One `stat` of a file in use, answered from memory, so it
    /// is cheap enough to precede every access and needs no thread of its own.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let same = std::fs::metadata(&self.path)
            .is_ok_and(|now| now.dev() == self.device && now.ino() == self.inode);
        if same {
            Ok(())
        } else {
            Err(StoreError::FileGone {
                path: self.path.clone(),
            })
        }
    }

    /// Begins to wait for the disk to have everything that was written until now. SQLite would do so while it lets no other write.
    pub(super) fn sync(&self) -> JoinHandle<io::Result<()>> {
        let sync = self.syncs.begin();
        // Opened here: a descriptor is told of a failure only if it is older than it, or the first to ask.
        let log = File::open(log_of(&self.path));
        spawn_blocking(move || sync.run(|| log?.sync_data()))
    }

    /// Whether a sync failed since the log was last folded: the disk may lack pages of it, and will not say so again.
    pub(super) fn lacks_pages(&self) -> bool {
        self.syncs.failed()
    }

    /// The log was folded into the database, and the disk has that.
    pub(super) fn folded(&self) {
        self.syncs.forget_failure();
    }

    /// Lets the next syncs fail.
    #[cfg(feature = "private-cluster")]
    pub(super) fn fail_syncs(&self, count: u32) {
        self.syncs.fail_next(count);
    }
}

/// Creates an empty database file, its folder too, when absent, unless that is on a network by what `kind_of` says of it. An existing
/// file is not even opened: closing a second descriptor of a database file drops the locks that this process holds on it.
pub(super) fn create(
    path: &Path,
    kind_of: impl Fn(&Path) -> io::Result<DiskKind>,
) -> io::Result<()> {
    let named = path.parent().filter(|folder| *folder != Path::new(""));
    if let Some(folder) = named {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    kind_of(named.unwrap_or(Path::new(".")))?
        .refuse_network()
        .map_err(io::Error::other)?;
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// SQLite's write-ahead log of a database. It is there while a connection is open, and SQLite locks other files: a
/// second descriptor of this one may be closed.
fn log_of(database: &Path) -> PathBuf {
    beside(database, "-wal")
}

/// Opens, and creates when absent, the file beside the database with this at the end of its name, for locks. Locking the database
/// file itself would meet SQLite's own locks.
pub(super) fn open_beside(database: &Path, ending: &str) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(beside(database, ending))
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}
