//! Pooler: a pgbouncer of our own between clients and a private cluster.

use std::{
    env, fs, io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{ClusterError, PrivateCluster, Programs, SUPERUSER, file_error};

/// The program, which Debian keeps where only root looks.
const PROGRAM: &str = "pgbouncer";
const DEBIAN_FOLDER: &str = "/usr/sbin";

/// What every client of PostgreSQL may bring and this pooler does not know.
const KNOWN_TO_CLIENTS: &str = "extra_float_digits";

/// Pause between two looks whether it listens, and how many are taken: half a minute's, for it starts within moments.
const PAUSE: Duration = Duration::from_millis(20);
const LOOKS: u32 = 1_500;

/// For how long a client has a connection of the server to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// As long as it is connected.
    Session,
    /// As long as a transaction lasts.
    Transaction,
}

/// What becomes of the settings that a client brings for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroughtSettings {
    /// The client is refused: pgbouncer's own default.
    Refused,
    /// They are left out.
    LeftOut,
}

/// A running pooler, which is killed when it is dropped.
#[derive(Debug)]
pub struct Pooler {
    process: Child,
    address: SocketAddr,
}

impl Pooler {
    /// Starts one in `folder`, on this port of the loopback interface, in front of the server at an address.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub fn start(
        folder: &Path,
        port: u16,
        server: SocketAddr,
        (mode, brought): (PoolMode, BroughtSettings),
    ) -> Result<Self, ClusterError> {
        let programs = Programs::find()?;
        let folder = programs.own_folder(folder)?;
        let settings = folder.join("pgbouncer.ini");
        fs::write(&settings, text(port, server, mode, brought))
            .map_err(|source| file_error(&settings, source))?;
        let mut start = programs.as_account(Command::new(program()?));
        // A group of its own, so that interrupting the tests does not interrupt it before its clients.
        start.arg("--quiet").arg(&settings).process_group(0);
        start.stdin(Stdio::null()).stdout(Stdio::null());
        let process = start.stderr(Stdio::null()).spawn();
        let mut pooler = Self {
            process: process.map_err(|error| failed(error.to_string()))?,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        };
        pooler.until_it_listens()?;
        Ok(pooler)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    fn until_it_listens(&mut self) -> Result<(), ClusterError> {
        for _ in 0..LOOKS {
            if TcpStream::connect(self.address).is_ok() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(failed(format!("ended with {status}")));
            }
            thread::sleep(PAUSE);
        }
        Err(failed("does not listen".to_owned()))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // One that has ended is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl PrivateCluster {
    /// Gives every new session of the cluster's user these settings, for poolers that leave out what clients bring.
    ///
    /// # Errors
    /// [`ClusterError::Server`].
    pub async fn set_for_user(&self, settings: &[(&str, &str)]) -> Result<(), ClusterError> {
        let failed = |error: sqlx::Error| ClusterError::Server(error.into());
        let url = self.url("postgres");
        let mut connection = PgConnection::connect(&url).await.map_err(failed)?;
        for (name, value) in settings {
            let statement = format!("ALTER ROLE {SUPERUSER} SET {name} = '{value}'");
            let set = sqlx::raw_sql(AssertSqlSafe(statement));
            set.execute(&mut connection).await.map_err(failed)?;
        }
        connection.close().await.map_err(failed)
    }
}

fn text(port: u16, server: SocketAddr, mode: PoolMode, brought: BroughtSettings) -> String {
    let mode = match mode {
        PoolMode::Session => "session",
        PoolMode::Transaction => "transaction",
    };
    let ignored = match brought {
        BroughtSettings::Refused => KNOWN_TO_CLIENTS.to_owned(),
        BroughtSettings::LeftOut => format!("{KNOWN_TO_CLIENTS},options"),
    };
    format!(
        "[databases]\n\
         * = host={} port={} user={SUPERUSER}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = {mode}\n\
         default_pool_size = 100\n\
         ignore_startup_parameters = {ignored}\n",
        server.ip(),
        server.port()
    )
}

fn program() -> Result<PathBuf, ClusterError> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&on_path)
        .chain([PathBuf::from(DEBIAN_FOLDER)])
        .map(|folder| folder.join(PROGRAM))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            let missing = "is neither on PATH nor under /usr/sbin; install the Debian package";
            failed(io::Error::new(io::ErrorKind::NotFound, missing).to_string())
        })
}

const fn failed(output: String) -> ClusterError {
    ClusterError::Failed {
        program: PROGRAM,
        output,
    }
}
