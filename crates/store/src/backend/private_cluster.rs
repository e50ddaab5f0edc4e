//! A private PostgreSQL cluster for tests, which touches no other server, data or port.
//!
//! It listens on a Unix socket, and on a port of the loopback interface where a test asks for one, under the account that runs the test; since PostgreSQL refuses to be
//! run by root, then under `postgres` or `nobody`. The server's programs are found on PATH or where
//! Debian's package `postgresql` puts them.

mod pooler;
mod programs;
mod standby;

use std::{
    env,
    fs::{self, File, OpenOptions},
    io,
    net::SocketAddr,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use thiserror::Error;

pub use self::pooler::{BroughtSettings, PoolMode, Pooler};
use self::programs::{DEBIAN_VERSIONS, Programs};

/// The superuser of the cluster.
const SUPERUSER: &str = "sluice";

/// Longest folder of a socket: the system allows 107 bytes for the path of the socket itself.
const MAX_SOCKET_FOLDER_BYTES: usize = 80;

/// Stops a shared cluster within seconds of its last user's end, however that came.
const SUPERVISOR: &str = r#"
    while sleep 2; do
        flock --nonblock --exclusive "$1" "$2" stop --pgdata "$3" --mode immediate && exit
        "$2" status --pgdata "$3" || exit
    done"#;

/// Why there is no cluster.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The programs are not installed.
    #[error(
        "{program} is neither on PATH nor under {DEBIAN_VERSIONS}; install the Debian package postgresql"
    )]
    NotInstalled {
        /// The one that was looked for.
        program: &'static str,
    },
    /// No account can stand in for root.
    #[error("PostgreSQL cannot run as root, and there is neither an account postgres nor nobody")]
    NoStandIn,
    /// A file could not be made or read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A program could not be started, or failed.
    #[error("{program} failed: {output}")]
    Failed {
        /// Which.
        program: &'static str,
        /// What it said.
        output: String,
    },
    /// The server refuses or does not answer.
    #[error("the private cluster does not answer: {0}")]
    Server(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Whether a crash of the machine may lose data. A crash of the server never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Commits wait for the disk, as in production: for measurements.
    Waits,
    /// They do not: for tests.
    DoesNotWait,
}

/// What a server identifies itself with, PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub chain: String,
    /// Its private key.
    pub key: String,
}

/// A running cluster.
#[derive(Debug)]
pub struct PrivateCluster {
    programs: Programs,
    data: PathBuf,
    socket: PathBuf,
    disk: Disk,
    port: Option<u16>,
    certificate: Option<Certificate>,
    // A shared cluster runs as long as a user holds this; None for one that ends with its owner.
    users: Option<File>,
}

impl PrivateCluster {
    /// Starts a cluster in `folder`, which it empties; it stops when it is dropped.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub fn start(folder: &Path, disk: Disk) -> Result<Self, ClusterError> {
        Self::start_as(folder, disk, None, None)
    }

    /// As [`Self::start`], and listens on this port of the loopback interface too.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub fn start_on_port(folder: &Path, disk: Disk, port: u16) -> Result<Self, ClusterError> {
        Self::start_as(folder, disk, Some(port), None)
    }

    /// As [`Self::start_on_port`], and takes encrypted connections alone on that port, by this certificate.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub fn start_encrypted(
        folder: &Path,
        port: u16,
        certificate: Certificate,
    ) -> Result<Self, ClusterError> {
        Self::start_as(folder, Disk::DoesNotWait, Some(port), Some(certificate))
    }

    fn start_as(
        folder: &Path,
        disk: Disk,
        port: Option<u16>,
        certificate: Option<Certificate>,
    ) -> Result<Self, ClusterError> {
        let programs = Programs::find()?;
        let folder = programs.own_folder(folder)?;
        let mut cluster = Self::describe(programs, &folder, disk)?;
        cluster.port = port;
        cluster.certificate = certificate;
        cluster.initialize()?;
        cluster.identify()?;
        cluster.boot()?;
        Ok(cluster)
    }

    /// The cluster that all tests share which name the same `folder`, whatever process they run in. The
    /// first starts it; seconds after the last has ended, it stops.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub fn shared(folder: &Path) -> Result<Self, ClusterError> {
        let programs = Programs::find()?;
        let folder = programs.own_folder(&folder.join("private-postgres"))?;
        let users = lock_file(&folder.join("users.lock"))?;
        users
            .lock_shared()
            .map_err(|source| file_error(&folder, source))?;
        let starting = lock_file(&folder.join("starting.lock"))?;
        starting
            .lock()
            .map_err(|source| file_error(&folder, source))?;
        let mut cluster = Self::describe(programs, &folder, Disk::DoesNotWait)?;
        if !cluster.is_running() {
            cluster.initialize()?;
            cluster.boot()?;
            cluster.supervise(&folder.join("users.lock"))?;
        }
        cluster.users = Some(users);
        Ok(cluster)
    }

    /// Makes a database and returns its URL for `Store::connect`.
    ///
    /// # Errors
    /// [`ClusterError::Server`].
    pub async fn create_database(&self, name: &str) -> Result<String, ClusterError> {
        let failed = |error: sqlx::Error| ClusterError::Server(error.into());
        let mut connection = PgConnection::connect(&self.url("postgres"))
            .await
            .map_err(failed)?;
        let quoted = name.replace('"', "\"\"");
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE \"{quoted}\"")))
            .execute(&mut connection)
            .await
            .map_err(failed)?;
        connection.close().await.map_err(failed)?;
        Ok(self.url(name))
    }

    /// Process of the server, which its own children follow when it dies.
    ///
    /// # Errors
    /// [`ClusterError::File`] when it does not run.
    pub fn server_pid(&self) -> Result<u32, ClusterError> {
        let path = self.data.join("postmaster.pid");
        let text = fs::read_to_string(&path).map_err(|source| file_error(&path, source))?;
        let pid = text
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok());
        pid.ok_or_else(|| file_error(&path, io::ErrorKind::InvalidData.into()))
    }

    /// Starts the server again after it was killed; it recovers from its log by itself. Data that was not
    /// lost is there.
    ///
    /// # Errors
    /// [`ClusterError::Failed`].
    pub fn boot(&self) -> Result<(), ClusterError> {
        let network = self.port.map_or_else(
            || "-c listen_addresses=".to_owned(),
            |port| format!("-c listen_addresses=127.0.0.1 -c port={port}"),
        );
        let settings = format!(
            "{network} -c unix_socket_directories={} -c max_connections=200 -c ssl={} -c fsync={}",
            self.socket.display(),
            if self.certificate.is_some() {
                "on"
            } else {
                "off"
            },
            if self.disk == Disk::Waits {
                "on"
            } else {
                "off"
            },
        );
        let mut start = self.programs.command("pg_ctl")?;
        start
            .arg("start")
            .arg("--wait")
            .arg("--silent")
            .arg("--pgdata")
            .arg(&self.data)
            .arg("--log")
            .arg(self.data.join("server.log"))
            .arg("--options")
            .arg(settings);
        // The server inherits what its starter's output went to; a pipe would never be closed.
        start.stdout(Stdio::null()).stderr(Stdio::null());
        // And a group of its own, so that interrupting the tests does not interrupt it.
        start.process_group(0);
        let status = start.status().map_err(|source| ClusterError::Failed {
            program: "pg_ctl",
            output: source.to_string(),
        })?;
        if status.success() {
            return Ok(());
        }
        let log = fs::read_to_string(self.data.join("server.log")).unwrap_or_default();
        Err(ClusterError::Failed {
            program: "pg_ctl",
            output: log,
        })
    }

    fn describe(programs: Programs, folder: &Path, disk: Disk) -> Result<Self, ClusterError> {
        let short = folder.as_os_str().len() <= MAX_SOCKET_FOLDER_BYTES;
        let socket = if short {
            folder.to_owned()
        } else {
            let inode = fs::metadata(folder)
                .map_err(|source| file_error(folder, source))?
                .ino();
            programs.own_folder(&env::temp_dir().join(format!("sluice-postgres-{inode}")))?
        };
        Ok(Self {
            programs,
            data: folder.join("data"),
            socket,
            disk,
            port: None,
            certificate: None,
            users: None,
        })
    }

    fn initialize(&self) -> Result<(), ClusterError> {
        match fs::remove_dir_all(&self.data) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file_error(&self.data, error));
            }
            _ => {}
        }
        let mut initdb = self.programs.command("initdb")?;
        initdb
            .arg("--pgdata")
            .arg(&self.data)
            .args(["--username", SUPERUSER, "--auth", "trust"])
            .args(["--encoding", "UTF8", "--locale", "C", "--no-sync"]);
        run(initdb, "initdb")
    }

    /// Gives the server its certificate, under the names that it looks for, and closes the port to what is not encrypted.
    fn identify(&self) -> Result<(), ClusterError> {
        let Some(certificate) = &self.certificate else {
            return Ok(());
        };
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
        for (name, text) in [
            ("server.crt", certificate.chain.as_str()),
            ("server.key", certificate.key.as_str()),
            ("pg_hba.conf", rules),
        ] {
            let path = self.data.join(name);
            let failed = |source| file_error(&path, source);
            fs::write(&path, text).map_err(failed)?;
            // The server refuses a key that others may read.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
            if let Some(account) = self.programs.account {
                chown(&path, Some(account.user), Some(account.group)).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn is_running(&self) -> bool {
        let status = self.programs.command("pg_ctl").map(|mut status| {
            status
                .arg("status")
                .arg("--pgdata")
                .arg(&self.data)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
        });
        matches!(status, Ok(Ok(status)) if status.success())
    }

    fn supervise(&self, users: &Path) -> Result<(), ClusterError> {
        let mut supervisor = self.programs.as_account(Command::new("sh"));
        supervisor
            .args(["-c", SUPERVISOR, "sh"])
            .arg(users)
            .arg(self.programs.path("pg_ctl")?)
            .arg(&self.data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map(drop)
            .map_err(|source| ClusterError::Failed {
                program: "sh",
                output: source.to_string(),
            })
    }

    fn url(&self, database: &str) -> String {
        let socket = self.socket.to_string_lossy().replace('/', "%2F");
        let port = self
            .port
            .map_or_else(String::new, |port| format!(":{port}"));
        format!("postgres://{SUPERUSER}@localhost{port}/{database}?host={socket}")
    }

    /// URL of a database at an address of the network: the port of the cluster, or what leads there.
    #[must_use]
    pub fn url_at(address: SocketAddr, database: &str) -> String {
        format!("postgres://{SUPERUSER}@{address}/{database}")
    }
}

impl Drop for PrivateCluster {
    fn drop(&mut self) {
        if self.users.is_some() {
            return;
        }
        // It may have been killed on purpose, so a failure to stop it means nothing.
        if let Ok(mut stop) = self.programs.command("pg_ctl") {
            let _ = stop
                .args(["stop", "--mode", "immediate", "--silent", "--pgdata"])
                .arg(&self.data)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}

fn run(mut command: Command, program: &'static str) -> Result<(), ClusterError> {
    let failed = |output| ClusterError::Failed { program, output };
    let output = command
        .output()
        .map_err(|source| failed(source.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn lock_file(path: &Path) -> Result<File, ClusterError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|source| file_error(path, source))?;
    // The supervisor, who may be another account, opens it for reading.
    file.set_permissions(fs::Permissions::from_mode(0o644))
        .map_err(|source| file_error(path, source))?;
    Ok(file)
}

fn file_error(path: &Path, source: io::Error) -> ClusterError {
    ClusterError::File {
        path: path.to_owned(),
        source,
    }
}
