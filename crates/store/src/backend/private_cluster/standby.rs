//! Standby of a private cluster: a server that streams what another one writes, and takes its place when promoted.

use std::{fs, io, path::Path, time::Duration};

use sqlx::{Connection, PgConnection};
use tokio::time::sleep;

use super::{ClusterError, PrivateCluster, SUPERUSER, file_error, run};

/// Lets commits wait until a standby, whatever it is called, has written them to its log.
const WAIT_FOR_STANDBY: [&str; 2] = [
    "ALTER SYSTEM SET synchronous_standby_names = '*'",
    "SELECT pg_reload_conf()",
];

/// Whether commits do wait for a standby.
const IS_WAITED_FOR: &str =
    "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')";

/// Pause between two questions whether they do, and how many are asked: a minute's, for a standby catches up within moments.
const PAUSE: Duration = Duration::from_millis(50);
const QUESTIONS: u32 = 1_200;

impl PrivateCluster {
    /// Copies this cluster, which goes on meanwhile, to `folder`, which is emptied, and starts the copy on this port as a
    /// standby: it streams what is written here. It waits until it has started.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub fn follow(&self, folder: &Path, port: u16) -> Result<Self, ClusterError> {
        let programs = super::Programs::find()?;
        let folder = programs.own_folder(folder)?;
        let mut standby = Self::describe(programs, &folder, self.disk)?;
        standby.port = Some(port);
        match fs::remove_dir_all(&standby.data) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file_error(&standby.data, error));
            }
            _ => {}
        }
        let mut copy = standby.programs.command("pg_basebackup")?;
        copy.arg("--host").arg(&self.socket);
        if let Some(port) = self.port {
            copy.arg("--port").arg(port.to_string());
        }
        copy.args(["--username", SUPERUSER, "--checkpoint", "fast"])
            .args(["--no-sync", "--write-recovery-conf", "--pgdata"])
            .arg(&standby.data);
        run(copy, "pg_basebackup")?;
        standby.boot()?;
        Ok(standby)
    }

    /// From when this returns, a commit is acknowledged only when a standby has it too, and a server that has lost its
    /// standby acknowledges none.
    ///
    /// # Errors
    /// [`ClusterError::Server`], also when no standby ever streams.
    pub async fn wait_for_standby(&self) -> Result<(), ClusterError> {
        let failed = |error: sqlx::Error| ClusterError::Server(error.into());
        let url = self.url("postgres");
        let mut connection = PgConnection::connect(&url).await.map_err(failed)?;
        for statement in WAIT_FOR_STANDBY {
            let done = sqlx::raw_sql(statement).execute(&mut connection).await;
            done.map_err(failed)?;
        }
        for _ in 0..QUESTIONS {
            let asked = sqlx::query_scalar(IS_WAITED_FOR).fetch_one(&mut connection);
            if asked.await.map_err(failed)? {
                return connection.close().await.map_err(failed);
            }
            sleep(PAUSE).await;
        }
        let never = io::Error::new(io::ErrorKind::TimedOut, "no standby streams");
        Err(ClusterError::Server(never.into()))
    }

    /// Makes a standby a server of its own, which takes writes, and waits until it does.
    ///
    /// # Errors
    /// [`ClusterError::Failed`].
    pub fn promote(&self) -> Result<(), ClusterError> {
        let mut promote = self.programs.command("pg_ctl")?;
        promote.args(["promote", "--wait", "--silent", "--pgdata"]);
        promote.arg(&self.data);
        run(promote, "pg_ctl")
    }
}
