//! Tests of the binary `sluice` as its users run it, beside an installation that each makes for itself.

mod doctor;
mod keyless;
mod keys;
mod listen;
mod service;

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use sluice_store::Store;
use sluice_testkit::free_port::free_port;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program listened to: any address will do.
const PROGRAM: &str = "11111111111111111111111111111112";

struct Installation {
    folder: TempDir,
    api: String,
}

impl Installation {
    /// A configuration whose validator does not exist: webhooks are managed without one.
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let port = free_port().expect("a free port");
        let text = format!(
            "[chain]\nrpc-url = \"http://127.0.0.1:1\"\n\
             [[geyser.endpoints]]\nurl = \"http://127.0.0.1:1\"\n\
             [store]\npath = {:?}\n\
             [api]\nlisten = \"127.0.0.1:{port}\"\nkeyless = true\n",
            database(folder.path()),
        );
        std::fs::write(folder.path().join("sluice.toml"), text).expect("writes");
        Self {
            folder,
            api: format!("http://127.0.0.1:{port}"),
        }
    }

    fn sluice(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("SLUICE_API_KEY")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let output = self.sluice(arguments).output();
        let output = timeout(PATIENCE, output).await.expect("in time");
        output.expect("runs")
    }

    async fn key(&self, name: &str) -> String {
        let added = self.run(&["keys", "add", name]).await;
        assert!(added.status.success(), "{added:?}");
        text(&added.stdout).trim().to_owned()
    }

    /// The API, once it answers.
    async fn serve(&self) -> Child {
        let child = self
            .sluice(&["api"])
            .stderr(Stdio::null())
            .spawn()
            .expect("runs");
        let address = self.api.trim_start_matches("http://").to_owned();
        let up = async {
            while tokio::net::TcpStream::connect(&address).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, up).await.expect("starts");
        child
    }

    async fn store(&self) -> Store {
        let opened = Store::open(&database(self.folder.path())).await;
        opened.expect("opens")
    }
}

fn database(folder: &Path) -> PathBuf {
    folder.join("sluice.db")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
