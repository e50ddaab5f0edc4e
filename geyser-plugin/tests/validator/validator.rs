//! `solana-test-validator` with the plugin loaded, on a ledger and ports of its own.

use std::{
    env,
    fs::{self, File},
    net::{Ipv4Addr, TcpListener, UdpSocket},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tokio::time::sleep;
use tonic::transport::{Channel, Endpoint};

/// How long the validator may take to start and to make the blocks that a scenario waits for.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Pause between two looks at a starting validator.
const POLL: Duration = Duration::from_millis(50);

/// Answers hold whole blocks, which exceed what Tonic allows by default.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Ports of one validator: the validator itself insists on some two dozen in its dynamic range.
const BLOCK: u16 = 50;

/// Below the ports that the system gives to outgoing connections.
const FIRST: u16 = 12_000;

/// Blocks that are tried.
const BLOCKS: u16 = 200;

/// A quarter of what clusters have, so that what takes as many slots comes in a quarter of the time: slots of 100 ms.
const TICKS_PER_SLOT: &str = "16";

/// Lets the validator die with this process, however that ends. Part of util-linux.
const SETPRIV: &str = "/usr/bin/setpriv";

/// A running validator; dropping it ends it and removes its folder.
pub struct Validator {
    child: Child,
    folder: PathBuf,
    grpc: String,
    // Kept bound, so that no other search takes the block.
    _claim: TcpListener,
}

impl Validator {
    /// Starts a validator and waits until the plugin serves.
    pub async fn start() -> Self {
        let (claim, base) = claim();
        let folder = env::temp_dir().join(format!("sluice-plugin-{}-{base}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let config = folder.join("plugin.json5");
        fs::write(&config, configuration(base + 5)).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let ledger = folder.join("ledger");
        let dynamic = format!("{}-{}", base + 10, base + BLOCK - 1);
        let options: [(&str, &str); 8] = [
            ("--ledger", &ledger.to_string_lossy()),
            ("--bind-address", "127.0.0.1"),
            ("--rpc-port", &(base + 1).to_string()),
            ("--faucet-port", &(base + 3).to_string()),
            ("--gossip-port", &(base + 4).to_string()),
            ("--dynamic-port-range", &dynamic),
            ("--geyser-plugin-config", &config.to_string_lossy()),
            ("--ticks-per-slot", TICKS_PER_SLOT),
        ];
        let child = validator()
            .args(["--reset", "--log"])
            .args(options.iter().flat_map(|(name, value)| [name, value]))
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("the validator starts; SLUICE_VALIDATOR names it, or it is on PATH");
        let mut validator = Self {
            child,
            folder,
            grpc: format!("http://127.0.0.1:{}", base + 5),
            _claim: claim,
        };
        validator.wait().await;
        validator
    }

    async fn wait(&mut self) {
        let begun = Instant::now();
        while Endpoint::from_shared(self.grpc.clone())
            .unwrap()
            .connect()
            .await
            .is_err()
        {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && begun.elapsed() < PATIENCE,
                "the plugin does not serve ({ended:?}); the validator's log:\n{}",
                fs::read_to_string(self.folder.join("log")).unwrap_or_default()
            );
            sleep(POLL).await;
        }
    }

    /// A connection to the plugin.
    pub async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(self.grpc.clone()).unwrap();
        endpoint.connect().await.unwrap()
    }
}

impl Drop for Validator {
    fn drop(&mut self) {
        // Both fail only when there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn validator() -> Command {
    let named = env::var_os("SLUICE_VALIDATOR").filter(|value| !value.is_empty());
    let program = named.unwrap_or_else(|| "solana-test-validator".into());
    if !Path::new(SETPRIV).exists() {
        return Command::new(program);
    }
    let mut command = Command::new(SETPRIV);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// The sample of this repository with the plugin just built, or what `GEYSER_SO` and `GEYSER_CONFIG` name.
fn configuration(port: u16) -> String {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    // As it is now: the test may have been built in another checkout.
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let sample = Path::new(&package).join("config.json5");
    let template = named("GEYSER_CONFIG").map_or(sample, PathBuf::from);
    let beside = env::current_exe().unwrap();
    let built = beside.with_file_name("libsluice_geyser_plugin.so");
    let library = named("GEYSER_SO").map_or(built, PathBuf::from);
    assert!(library.is_file(), "{} is no file", library.display());
    fs::read_to_string(template)
        .unwrap()
        .replace("{{libpath}}", &library.to_string_lossy())
        .replace("{{address}}", &format!("127.0.0.1:{port}"))
}

/// A block of free ports, the first of which is taken: of two searches at the same moment only one gets the block.
fn claim() -> (TcpListener, u16) {
    let start = (std::process::id() % u32::from(BLOCKS)) as u16;
    let free = |port: &u16| {
        let any = (Ipv4Addr::UNSPECIFIED, *port);
        TcpListener::bind(any).is_ok() && UdpSocket::bind(any).is_ok()
    };
    (0..BLOCKS)
        .map(|step| FIRST + (start + step) % BLOCKS * BLOCK)
        .find_map(|base| {
            let claim = TcpListener::bind((Ipv4Addr::LOCALHOST, base)).ok()?;
            let all = (base + 1..base + BLOCK).all(|port| free(&port));
            all.then_some((claim, base))
        })
        .expect("a block of free ports")
}
