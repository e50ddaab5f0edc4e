//! Database under the processes, which may be killed as well.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
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
    testing::{BroughtSettings, ClusterError, Disk, PoolMode, Pooler, PrivateCluster},
};
use sluice_testkit::{free_port::free_port, network_link::NetworkLink};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

/// How long a killed server's children may take to notice, and the server to start again.
const BOOTING: Duration = Duration::from_secs(60);

/// Name of the database on a server.
const NAME: &str = "chaos";

/// What a pooler's user has, since pgbouncer leaves out what a session brings: as docs/operations.md lists it.
const SETTINGS: [(&str, &str); 5] = [
    ("idle_in_transaction_session_timeout", "8s"),
    ("tcp_keepalives_idle", "3"),
    ("tcp_keepalives_interval", "1"),
    ("tcp_keepalives_count", "4"),
    ("tcp_user_timeout", "8s"),
];

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
    /// Where it listens.
    address: SocketAddr,
    /// Where its data is, and its standbys'.
    folder: PathBuf,
    /// How many standbys it has had.
    standbys: u32,
    /// The way of the run itself to it.
    own: NetworkLink,
    boot_at: Option<Instant>,
    booting: Option<JoinHandle<Result<(), ClusterError>>>,
    /// What is killed next: both kinds in turn, so that a short run has both.
    next: Part,
}

/// A server that follows another one.
pub struct Standby {
    cluster: PrivateCluster,
    address: SocketAddr,
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
        let place = folder.join("cluster");
        let port = free_port()?;
        let start = move || PrivateCluster::start_on_port(&place, Disk::DoesNotWait, port);
        let cluster = spawn_blocking(start).await??;
        cluster.create_database(NAME).await?;
        cluster.set_for_user(&SETTINGS).await?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Self::Server(Server {
            cluster: Arc::new(cluster),
            address,
            folder: folder.to_owned(),
            standbys: 0,
            own: NetworkLink::to(address).await?,
            boot_at: None,
            booting: None,
            next: Part::Postmaster,
        }))
    }

    /// Where it listens, if it does.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::File(_) => None,
            Self::Server(server) => Some(server.address),
        }
    }

    /// The configuration's line that names it, to a process that reaches it over this link.
    #[must_use]
    pub fn setting(&self, link: Option<&NetworkLink>) -> String {
        match self {
            Self::File(path) => format!("path = \"{}\"", path.display()),
            Self::Server(server) => {
                let address = link.map_or(server.address, NetworkLink::address);
                format!("url = \"{}\"", PrivateCluster::url_at(address, NAME))
            }
        }
    }

    /// Opens it, as the API would.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open(&self) -> Result<Store, StoreError> {
        match self {
            Self::File(path) => Store::open(path).await,
            Self::Server(server) => {
                Store::connect(&PrivateCluster::url_at(server.own.address(), NAME)).await
            }
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

    /// Whether it runs and takes connections, as far as is known.
    #[must_use]
    pub fn is_up(&self) -> bool {
        !self.is_down() && is_alive(self.cluster.server_pid().unwrap_or(0))
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts a pooler in session mode before it, on this port.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn pool(&self, port: u16) -> anyhow::Result<Pooler> {
        let (folder, server) = (self.folder.join("pooler"), self.address);
        let kind = (PoolMode::Session, BroughtSettings::LeftOut);
        let start = move || Pooler::start(&folder, port, server, kind);
        Ok(spawn_blocking(start).await??)
    }

    /// Makes a standby, without which no commit is acknowledged from then on.
    ///
    /// # Errors
    /// When it does not start or stream.
    pub async fn follow(&mut self) -> anyhow::Result<Standby> {
        self.standbys += 1;
        let folder = self.folder.join(format!("standby-{}", self.standbys));
        let port = free_port()?;
        let primary = Arc::clone(&self.cluster);
        let cluster = spawn_blocking(move || primary.follow(&folder, port)).await??;
        self.cluster.wait_for_standby().await?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Standby { cluster, address })
    }

    /// Kills the server, all of it and for good, without a word to who is connected over these links, and puts the standby
    /// in its place.
    ///
    /// # Errors
    /// When the standby does not take its place.
    pub async fn fail_over(
        &mut self,
        standby: Standby,
        links: &[&NetworkLink],
    ) -> anyhow::Result<()> {
        let links: Vec<_> = links.iter().copied().chain([&self.own]).collect();
        for link in &links {
            link.refuse(true);
            link.strand();
        }
        let postmaster = self.cluster.server_pid()?;
        let children = children_of(postmaster)?;
        kill_hard(postmaster)?;
        for child in children {
            kill_hard(child)?;
        }
        let Standby { cluster, address } = standby;
        let cluster = Arc::new(cluster);
        let promoted = Arc::clone(&cluster);
        spawn_blocking(move || promoted.promote()).await??;
        for link in &links {
            link.redirect(address);
            link.refuse(false);
        }
        self.cluster = cluster;
        self.address = address;
        Ok(())
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
