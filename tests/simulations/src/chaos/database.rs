//! Database under the processes, which may be killed as well.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::ValueEnum;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use sluice_store::{
    Store, StoreError,
    testing::{ClusterError, Disk, PrivateCluster},
};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

/// How long a killed server's children may take to notice, and the server to start again.
const BOOTING: Duration = Duration::from_secs(60);

/// Pause between two attempts to start it.
const BOOT_PAUSE: Duration = Duration::from_millis(100);

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// One file.
    Sqlite,
    /// A private server.
    Postgres,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }

    /// How many processes share it.
    #[must_use]
    pub const fn processes(self) -> usize {
        match self {
            Self::Sqlite => 2,
            Self::Postgres => 3,
        }
    }
}

/// A database.
pub enum Database {
    /// A file.
    File(PathBuf),
    /// A server of our own.
    Server(Server),
}

/// A server that is killed and started again.
pub struct Server {
    cluster: Arc<PrivateCluster>,
    url: String,
    boot_at: Option<Instant>,
    booting: Option<JoinHandle<Result<(), ClusterError>>>,
    /// What is killed next: both kinds in turn, so that a short run has both.
    next: Part,
}

/// What of a server was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The process that all others descend from.
    Postmaster,
    /// One of the others; the server then starts all of them anew.
    Backend,
}

impl Database {
    /// Makes an empty database in `folder`: a file that does not exist yet, or a server without tables.
    ///
    /// # Errors
    /// When there is no PostgreSQL, or it does not start.
    pub async fn make(kind: Kind, folder: &Path) -> anyhow::Result<Self> {
        if kind == Kind::Sqlite {
            return Ok(Self::File(folder.join("sluice.db")));
        }
        let folder = folder.join("cluster");
        let start = move || PrivateCluster::start(&folder, Disk::DoesNotWait);
        let cluster = spawn_blocking(start).await??;
        let url = cluster.create_database("chaos").await?;
        Ok(Self::Server(Server {
            cluster: Arc::new(cluster),
            url,
            boot_at: None,
            booting: None,
            next: Part::Postmaster,
        }))
    }

    /// The configuration's line that names it.
    #[must_use]
    pub fn setting(&self) -> String {
        match self {
            Self::File(path) => format!("path = \"{}\"", path.display()),
            Self::Server(server) => format!("url = \"{}\"", server.url),
        }
    }

    /// Opens it, as the API would.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open(&self) -> Result<Store, StoreError> {
        match self {
            Self::File(path) => Store::open(path).await,
            Self::Server(server) => Store::connect(&server.url).await,
        }
    }

    /// Kills a part of it, if it has any that runs.
    ///
    /// # Errors
    /// When the system does not let it be killed.
    pub fn kill(&mut self, rng: &mut StdRng) -> anyhow::Result<Option<Part>> {
        let Self::Server(server) = self else {
            return Ok(None);
        };
        server.kill(rng)
    }

    /// Starts what does not run and is due.
    ///
    /// # Errors
    /// When it does not start in time.
    pub async fn tend(&mut self) -> anyhow::Result<()> {
        match self {
            Self::File(_) => Ok(()),
            Self::Server(server) => server.tend().await,
        }
    }
}

impl Server {
    fn kill(&mut self, rng: &mut StdRng) -> anyhow::Result<Option<Part>> {
        let postmaster = self.cluster.server_pid()?;
        if self.is_down() || !is_alive(postmaster) {
            return Ok(None);
        }
        match self.next {
            Part::Postmaster => {
                let pause = Duration::from_millis(rng.random_range(0..1_500));
                self.boot_at = Some(Instant::now() + pause);
                kill_hard(postmaster)?;
                self.next = Part::Backend;
                Ok(Some(Part::Postmaster))
            }
            Part::Backend => {
                let children = children_of(postmaster)?;
                let Some(child) = children.choose(rng) else {
                    return Ok(None);
                };
                kill_hard(*child)?;
                self.next = Part::Postmaster;
                Ok(Some(Part::Backend))
            }
        }
    }

    fn is_down(&self) -> bool {
        self.boot_at.is_some() || self.booting.is_some()
    }

    async fn tend(&mut self) -> anyhow::Result<()> {
        if let Some(booting) = self.booting.take_if(|booting| booting.is_finished()) {
            booting.await?.context("PostgreSQL does not start again")?;
        }
        // A server whose recovery is killed gives up, and so does one whose other parts are killed too often.
        if !self.is_down() && !is_alive(self.cluster.server_pid().unwrap_or(0)) {
            self.boot_at = Some(Instant::now());
        }
        if self.booting.is_none() && self.boot_at.is_some_and(|at| at <= Instant::now()) {
            self.boot_at = None;
            self.booting = Some(tokio::spawn(boot(Arc::clone(&self.cluster))));
        }
        Ok(())
    }
}

async fn boot(cluster: Arc<PrivateCluster>) -> Result<(), ClusterError> {
    let deadline = Instant::now() + BOOTING;
    loop {
        let cluster = Arc::clone(&cluster);
        let booted = spawn_blocking(move || cluster.boot())
            .await
            .map_err(|error| ClusterError::Server(error.into()))?;
        // The killed server's children need a moment to notice.
        if booted.is_ok() || Instant::now() > deadline {
            return booted;
        }
        sleep(BOOT_PAUSE).await;
    }
}

fn kill_hard(pid: u32) -> anyhow::Result<()> {
    match kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGKILL) {
        // It ended meanwhile.
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// State and parent of a process, as its entry under /proc says.
fn stat(pid: u32) -> Option<(String, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before stands in parentheses and may hold anything.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z")
}

fn children_of(parent: u32) -> io::Result<Vec<u32>> {
    let processes = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut children: Vec<u32> = processes
        .filter(|pid| stat(*pid).is_some_and(|(_, of)| of == parent))
        .collect();
    children.sort_unstable();
    Ok(children)
}
