//! [`DatabaseFile`]: checks that SQLite's file is still where it was opened, syncs its log, and tells whether its disk has room.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::errno::Errno;
use tokio::task::{JoinHandle, spawn_blocking};

use super::{
    network_disk::DiskKind,
    room::{may_lack_room, meaning},
    syncs::Syncs,
};
use crate::StoreError;

/// Links that are followed to a file, as many as Linux follows.
const MOST_LINKS: u32 = 40;

/// What is written to see whether there is room: more than SQLite writes at once.
static PROBE: [u8; 65_536] = [0; 65_536];

/// The file that was opened, as the file system identifies it.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    /// As it was asked for, where that is another path, perhaps a link.
    named: Option<PathBuf>,
    device: u64,
    inode: u64,
    syncs: Arc<Syncs>,
}

impl DatabaseFile {
    /// Remembers which file is at `path` now, as [`place`] found it for what it was `named`.
    pub(super) fn identify(path: &Path, named: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            named: (named != path).then(|| named.to_owned()),
            device: metadata.dev(),
            inode: metadata.ino(),
            syncs: Arc::default(),
        })
    }

    /// Where it was opened: its own path, and no link.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is still there, and named as it was: a link may name another file by now, and what is beside the file does not
    /// go with a link. Two `stat`s at most of a file in use, answered from memory, so it is cheap enough to precede every access and needs
    /// no thread of its own.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_same = |path: &&PathBuf| {
            fs::metadata(path).is_ok_and(|now| now.dev() == self.device && now.ino() == self.inode)
        };
        let mut paths = self.named.iter().chain([&self.path]);
        let other = paths.find(|path| !is_same(path));
        other.map_or(Ok(()), |path| {
            Err(StoreError::FileGone { path: path.clone() })
        })
    }

    /// The answer to what was to write to it. SQLite says of a disk that is full that it is, and of a quota that is used up only
    /// that the system failed; so it is tried then whether there is room.
    pub(super) async fn known<T>(&self, done: Result<T, sqlx::Error>) -> Result<T, StoreError> {
        let error = match done {
            Err(error) if may_lack_room(&error) => error,
            done => return Ok(done?),
        };
        let path = self.path.clone();
        let tried = spawn_blocking(move || try_room(&path)).await;
        Err(meaning(error, tried.map_err(io::Error::from).flatten()))
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

/// Where the file is, or is to be, that a path names: SQLite follows links, and has its log beside what they lead to. Its folder is
/// created when absent.
pub(super) fn place(named: &Path) -> io::Result<PathBuf> {
    let mut path = named.to_owned();
    let mut followed = 0_u32;
    while let Some(target) = target(&path)? {
        followed = followed.saturating_add(1);
        if followed > MOST_LINKS {
            return Err(Errno::ELOOP.into());
        }
        path = folder(&path).join(target);
    }
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    let folder = folder(&path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    Ok(folder.canonicalize()?.join(name))
}

/// What a link names, as it says so; `None` of what is no link, or not there.
fn target(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::read_link(path) {
        Ok(target) => Ok(Some(target)),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// Creates an empty database file at its [`place`], when absent, unless its folder is on a network by what `kind_of` says of it. An
/// existing file is not even opened: closing a second descriptor of a database file drops the locks that this process holds on it.
pub(super) fn create(
    path: &Path,
    kind_of: impl Fn(&Path) -> io::Result<DiskKind>,
) -> io::Result<()> {
    kind_of(folder(path))?
        .refuse_network()
        .map_err(io::Error::other)?;
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
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

/// Writes a little beside the database and removes it. Two processes may do so at once.
fn try_room(database: &Path) -> io::Result<()> {
    let mut probe = open_beside(database, "-room")?;
    // What a process left that ended meanwhile has its room already.
    let tried = probe.set_len(0).and_then(|()| probe.write_all(&PROBE));
    // Where it stays, the next is written over it.
    let _ = fs::remove_file(beside(database, "-room"));
    tried
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

#[cfg(test)]
mod tests {
    use sluice_testkit::small_disk::SmallDisk;

    use super::*;
    use crate::backend::room::Refused;

    fn file(folder: &Path) -> DatabaseFile {
        let path = folder.join("sluice.db");
        File::create(&path).expect("creates");
        DatabaseFile::identify(&path, &path).expect("is there")
    }

    async fn failed(file: &DatabaseFile) -> StoreError {
        let failed = file.known::<()>(Err(Refused::WRITE.into())).await;
        failed.expect_err("a failure stays one")
    }

    #[tokio::test]
    async fn a_write_that_fails_on_a_disk_with_room_is_not_for_want_of_it_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = file(folder.path());
        let failed = failed(&file).await;
        assert!(matches!(failed, StoreError::Database(_)), "{failed:?}");
        let left = folder.path().read_dir().expect("reads").count();
        assert_eq!(left, 1, "the database alone");
    }

    #[tokio::test]
    async fn a_write_that_fails_on_a_disk_without_room_is_for_want_of_it() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let Some(disk) = SmallDisk::mount(folder.path(), "1m").expect("mount runs") else {
            eprintln!("not tried: only root may make a disk of its own");
            return;
        };
        let file = file(folder.path());
        let ballast = disk.fill().expect("fills");
        let without_room = failed(&file).await;
        assert!(
            matches!(without_room, StoreError::Full(_)),
            "{without_room:?}"
        );
        // Emptied, which counts at once. A process that another test just starts may have it open still.
        fs::write(ballast, "").expect("makes room");
        let with_room = failed(&file).await;
        assert!(
            matches!(with_room, StoreError::Database(_)),
            "{with_room:?}"
        );
    }
}
