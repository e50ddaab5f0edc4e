//! Integrators' own tools against a localnet, in JavaScript and Python, the examples of our clients, and the console in a browser.
//!
//! They swap with the libraries that people use and check webhooks with the scheme's official ones, and a fuzzer takes
//! the API by its own description.
//!
//! `cargo xtask clients` sets the tools up under `target/clients` and runs this.

use std::{
    ffi::OsString,
    fs,
    io::{self, IsTerminal, Seek},
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use sluice_localnet::{
    Localnet, Scene,
    artifacts::{beside_this_executable, repository_root},
    scene::Token,
};
use solana_signer::Signer;
use tokio::{process::Command, time::timeout};

use crate::{net::TestNet, rust_examples};

/// How long one suite may take. The browser and schemathesis need some three minutes each where nothing else runs, and five times
/// as long on a machine that is half as fast and busy; with the others, which need some ten seconds each, they must stay below the
/// time after which the test runner kills this test.
const PATIENCE: Duration = Duration::from_secs(1_500);

/// How long one file of JavaScript tests may take, milliseconds: Node holds the file as a whole to it, and not each of its tests alone. A
/// file that hangs is named before the suite is given up. Those in a browser hold themselves to as much (`together.js`).
const NODE_TEST_TIMEOUT: &str = "--test-timeout=750000";

/// One line for each test.
const NODE_REPORTER: &str = "--test-reporter=spec";

/// A program that talks to the localnet and fails when something is not as promised.
struct Suite {
    name: &'static str,
    folder: PathBuf,
    program: PathBuf,
    arguments: Vec<OsString>,
}

#[tokio::test]
async fn clients_swap_and_verify() -> anyhow::Result<()> {
    let folders = Folders::of_the_repository();
    let suites = suites(&folders)?;
    let net = TestNet::start().await?;
    folders.check_addresses(&net.net.scene)?;
    // One after the other: they share a wallet, whose balances each of them measures.
    let mut failed = judge_all(&suites, &net.net, &folders).await;
    println!("==> Rust: sluice-client");
    let begun = Instant::now();
    if let Err(error) = rust_examples::judge(&net.net).await {
        failed.push(format!("Rust: sluice-client: {error:#}"));
    }
    println!("==> it took {:.1} s", begun.elapsed().as_secs_f64());
    end(net, &failed).await
}

/// On a localnet of its own, so that it runs beside the others.
#[tokio::test]
async fn the_console_is_used_in_a_browser() -> anyhow::Result<()> {
    let folders = Folders::of_the_repository();
    let suites = suites_in_a_browser(&folders)?;
    let net = TestNet::start().await?;
    let failed = judge_all(&suites, &net.net, &folders).await;
    end(net, &failed).await
}

/// What failed of these suites, one after the other.
async fn judge_all(suites: &[Suite], net: &Localnet, folders: &Folders) -> Vec<String> {
    let mut failed = Vec::new();
    for suite in suites {
        failed.extend(suite.judge(net, folders).await);
    }
    failed
}

/// Stops the localnet, and fails with what failed on it.
async fn end(net: TestNet, failed: &[String]) -> anyhow::Result<()> {
    if !failed.is_empty() {
        eprintln!("==> Sluice's log\n{}", net.sluice_log()?);
    }
    net.stop().await?;
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Where the suites and their tools are.
struct Folders {
    suites: PathBuf,
    typescript: PathBuf,
    tools: PathBuf,
    openapi: PathBuf,
    readme: PathBuf,
}

impl Folders {
    fn of_the_repository() -> Self {
        let root = repository_root();
        Self {
            suites: root.join("tests/clients"),
            typescript: root.join("clients/typescript"),
            tools: root.join("target/clients"),
            openapi: root.join("openapi.json"),
            readme: root.join("README.md"),
        }
    }

    /// Texts name addresses of the scene: with others the fuzzer would not get past the first check.
    fn check_addresses(&self, scene: &Scene) -> anyhow::Result<()> {
        let settings = self.suites.join("fuzz/schemathesis.toml");
        let text = fs::read_to_string(&settings)?;
        let pools = scene.pools.iter().map(|pool| pool.address);
        let wallet = scene.wallet.pubkey();
        let accounts = [&scene.usd, &scene.alfa].map(|token| token.account_of(&wallet));
        let others = [wallet, scene.nonce].into_iter().chain(accounts);
        let mints = tokens(scene).map(|(_, token)| token.mint);
        for address in pools.chain(mints).chain(others) {
            ensure!(
                text.contains(&address.to_string()),
                "{address} of the scene is not in {}",
                settings.display()
            );
        }
        self.check_readme(scene)
    }

    /// The lines that README has people copy name the guard and two mints; with other addresses they would watch and swap nothing.
    fn check_readme(&self, scene: &Scene) -> anyhow::Result<()> {
        let text = fs::read_to_string(&self.readme)?;
        let guard = swap_guard_interface::PROGRAM_ID;
        let mints = [scene.sol, scene.usd].map(|token| token.mint.to_string());
        for (command, arguments) in [
            ("target/debug/sluice listen ", format!("--programs {guard}")),
            ("target/debug/examples/swap ", mints.join(" ")),
        ] {
            let lines: Vec<_> = text
                .lines()
                .filter(|line| line.starts_with(command))
                .collect();
            ensure!(!lines.is_empty(), "README has no line `{command}…`");
            for line in lines {
                ensure!(
                    line.contains(&arguments),
                    "`{line}` in README does not name what the scene has: `{arguments}`"
                );
            }
        }
        Ok(())
    }

    fn tool(&self, path: &str) -> anyhow::Result<PathBuf> {
        let tool = self.tools.join(path);
        ensure!(
            tool.is_file(),
            "{} does not exist; `cargo xtask clients` makes it",
            tool.display()
        );
        Ok(tool)
    }
}

fn suites(folders: &Folders) -> anyhow::Result<Vec<Suite>> {
    let node = folders.suites.join("node");
    let examples = folders.typescript.join("examples");
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    // Through the interpreter: the installed script names the folder that it was installed from.
    let mut conform = words(&["-m", "schemathesis.cli", "run"]);
    conform.push(folders.openapi.clone().into());
    Ok(vec![
        Suite {
            name: "JavaScript: @solana/web3.js, @solana/kit, standardwebhooks",
            arguments: javascript_tests(&node)?,
            folder: node,
            program: folders.tool("bin/node")?,
        },
        Suite {
            name: "TypeScript: @sluice/client",
            arguments: javascript_tests(&examples)?,
            folder: folders.typescript.clone(),
            program: folders.tool("bin/node")?,
        },
        Suite {
            name: "Python: solders, standardwebhooks",
            folder: folders.suites.join("python"),
            program: folders.tool("python/bin/python3")?,
            arguments: words(&["-m", "unittest", "discover", "--verbose"]),
        },
        Suite {
            name: "Hypothesis: damaged bodies",
            folder: folders.suites.join("fuzz"),
            program: folders.tool("fuzz/bin/python3")?,
            arguments: words(&["damaged_bodies.py", "--verbose"]),
        },
        Suite {
            name: "schemathesis: openapi.json",
            folder: folders.suites.join("fuzz"),
            program: folders.tool("fuzz/bin/python3")?,
            arguments: conform,
        },
    ])
}

/// The console without keys and then with one: from the first key on nobody is answered without.
fn suites_in_a_browser(folders: &Folders) -> anyhow::Result<[Suite; 2]> {
    let suite = |name, folder: PathBuf, arguments: Vec<OsString>| {
        anyhow::Ok(Suite {
            name,
            arguments,
            folder,
            program: folders.tool("bin/node")?,
        })
    };
    let browser = folders.suites.join("browser");
    let keys = browser.join("keys");
    let without = vec![NODE_REPORTER.into(), "together.js".into()];
    let with = javascript_tests(&keys)?;
    Ok([
        suite("Chromium: the console and the reference", browser, without)?,
        suite("Chromium: the console with keys", keys, with)?,
    ])
}

/// What Node is given to run the tests of a folder.
fn javascript_tests(folder: &Path) -> anyhow::Result<Vec<OsString>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".test.js") {
            files.push(path.into_os_string());
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "no tests in {}", folder.display());
    let mut words: Vec<OsString> = vec![
        "--test".into(),
        "--test-concurrency=1".into(),
        NODE_REPORTER.into(),
        NODE_TEST_TIMEOUT.into(),
    ];
    words.extend(files);
    Ok(words)
}

impl Suite {
    /// Runs it, says how long it took, and returns what failed.
    async fn judge(&self, net: &Localnet, folders: &Folders) -> Option<String> {
        let begun = Instant::now();
        println!("==> {}", self.name);
        let failed = self.run(net, folders).await.err();
        println!(
            "==> {} took {:.1} s",
            self.name,
            begun.elapsed().as_secs_f64()
        );
        failed.map(|error| format!("{}: {error:#}", self.name))
    }

    /// On a terminal its words are shown as they come. Elsewhere those of a suite that fails are, so that they are found.
    async fn run(&self, net: &Localnet, folders: &Folders) -> anyhow::Result<()> {
        if io::stdout().is_terminal() {
            return self.run_into(net, folders, io::stdout().as_fd()).await;
        }
        let mut words = tempfile::tempfile()?;
        let ended = self.run_into(net, folders, words.as_fd()).await;
        if ended.is_err() {
            words.rewind()?;
            io::copy(&mut words, &mut io::stdout())?;
        }
        ended
    }

    async fn run_into(
        &self,
        net: &Localnet,
        folders: &Folders,
        words: BorrowedFd<'_>,
    ) -> anyhow::Result<()> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .current_dir(&self.folder)
            .envs(environment(net))
            // Pictures of the console's pages: output like what is built, and compared with nothing.
            .env("SLUICE_SCREENSHOTS", folders.tools.join("screenshots"))
            .stdin(Stdio::null())
            // One stream, so that what is said stays in its order.
            .stdout(words.try_clone_to_owned()?)
            .stderr(words.try_clone_to_owned()?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| self.program.display().to_string())?;
        let Ok(ended) = timeout(PATIENCE, child.wait()).await else {
            bail!("did not end within {} s", PATIENCE.as_secs());
        };
        let status = ended?;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

/// What a client is given of the localnet.
fn environment(net: &Localnet) -> Vec<(&'static str, OsString)> {
    let scene = &net.scene;
    let mut environment: Vec<(&'static str, OsString)> = vec![
        ("SLUICE_API_URL", net.sluice().api().into()),
        ("SLUICE_INDEXER_URL", net.sluice().indexer().into()),
        ("SLUICE_RPC_URL", net.validator.rpc_url().into()),
        // The validator's subscriptions listen on the port after that of its requests.
        (
            "SLUICE_RPC_WS_URL",
            format!("ws://127.0.0.1:{}", net.ports.rpc + 1).into(),
        ),
        ("SLUICE_WALLET", net.dir.wallet().into()),
        ("SLUICE_BINARY", beside_this_executable("sluice").into()),
        ("SLUICE_CONFIG", net.dir.sluice_config().into()),
        (
            "SLUICE_GUARD",
            swap_guard_interface::PROGRAM_ID.to_string().into(),
        ),
        // Everything is on this machine, whatever proxy the environment names.
        ("NO_PROXY", "127.0.0.1".into()),
        // The sources' folder stays as it is.
        ("PYTHONDONTWRITEBYTECODE", "1".into()),
        (
            "HYPOTHESIS_STORAGE_DIRECTORY",
            net.dir.root().join("hypothesis").into(),
        ),
        ("PYTHONUNBUFFERED", "1".into()),
    ];
    for (name, token) in tokens(scene) {
        environment.push((name, token.mint.to_string().into()));
    }
    environment
}

/// Every token of the scene, by the variable that names its mint.
fn tokens(scene: &Scene) -> [(&'static str, Token); 5] {
    [
        ("SLUICE_MINT_SOL", scene.sol),
        ("SLUICE_MINT_USDL", scene.usd),
        ("SLUICE_MINT_ALFA", scene.alfa),
        ("SLUICE_MINT_BETA", scene.beta),
        ("SLUICE_MINT_LEVY", scene.levy),
    ]
}
