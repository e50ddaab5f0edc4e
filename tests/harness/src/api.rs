//! API harness: starts the whole API between an RPC node and a running chain.
//!
//! What a real validator does not do on demand, the node and the chain do: fail, be slow, move a pool.

use std::{
    ops::Deref,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use cpmm::{TokenProgram, TransferFeeConfig, ids};
use service_kit::{CancellationToken, telemetry};
use sluice_config::Config;
use sluice_testkit::{
    accounts::Content,
    free_port::free_port,
    pool::{Ledger, Pool, PoolSpec, TokenSpec, constant_fee},
    rpc_node::RpcNode,
    running_chain::{Running, RunningChain},
    scripted_pools,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::services;

/// How long the API may take to be ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the chain runs: faster than a real one, so that a test does not wait, with the node two slots behind the stream,
/// as nodes are.
const RUNNING: Running = Running {
    genesis: 1_000,
    slot_time: Duration::from_millis(25),
    confirmed_behind: 2,
    clock,
};

/// The epoch, in which every transfer fee is in force.
const EPOCH: u64 = 500;

/// Balance of each vault, smallest units.
const RESERVE: u64 = 1_000_000_000_000;

/// Lines of the configuration that a test adds, by section.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines<'a> {
    /// In `[chain]`.
    pub chain: &'a str,
    /// In `[api]`.
    pub api: &'a str,
}

/// What the API has around it: a node, a running chain and three pools. Dropping it ends all of them.
pub struct ApiSurroundings {
    /// The port on which the API is to listen.
    pub port: u16,
    /// The node that it asks.
    pub node: RpcNode,
    /// The chain that it listens to.
    pub chain: RunningChain,
    /// A pool of SOL and an SPL token.
    pub sol_pool: Pool,
    /// A pool of an SPL token and a Token-2022 one with a transfer fee.
    pub fee_pool: Pool,
    /// A pool of the SPL token of [`ApiSurroundings::sol_pool`] and another one: the second of two hops from SOL.
    pub far_pool: Pool,
    /// The database file that it keeps webhooks in.
    pub database: PathBuf,
    /// The configuration of an API in the midst of it.
    pub config: String,
    _folder: TempDir,
}

impl ApiSurroundings {
    /// Starts all of it. A call of the API to the node ends after `rpc_timeout`; `lines` are added to its configuration.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(rpc_timeout: Duration, lines: Lines<'_>) -> anyhow::Result<Self> {
        let mut node = RpcNode::holding([]).await?;
        let mut sol_pool = PoolSpec::of(TokenSpec::spl(RESERVE), TokenSpec::spl(RESERVE))
            .open(&mut node, "sol pool");
        sol_pool.wrap_first(&mut node);
        let fee: TransferFeeConfig = constant_fee(100);
        let taxed = TokenSpec::with_fee(RESERVE, fee);
        ensure!(taxed.program == TokenProgram::Token2022);
        let fee_pool = PoolSpec::of(TokenSpec::spl(RESERVE), taxed).open(&mut node, "fee pool");
        let far_pool = far_pool(&mut node, &sol_pool);

        let folder = tempfile::tempdir()?;
        let chain = RunningChain::start(node.clone(), RUNNING).await?;
        let port = free_port()?;
        let config = config(&node.url(), &chain, port, rpc_timeout, &folder, lines);
        Ok(Self {
            port,
            node,
            chain,
            sol_pool,
            fee_pool,
            far_pool,
            database: folder.path().join("sluice.db"),
            config,
            _folder: folder,
        })
    }

    /// Where the API listens: `http://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// The API with its surroundings. Dropping it ends all of them.
pub struct ApiHarness {
    /// Where the API listens: `http://127.0.0.1:port`.
    pub url: String,
    surroundings: ApiSurroundings,
    shutdown: CancellationToken,
    api: JoinHandle<anyhow::Result<()>>,
}

impl Deref for ApiHarness {
    type Target = ApiSurroundings;

    fn deref(&self) -> &ApiSurroundings {
        &self.surroundings
    }
}

impl ApiHarness {
    /// Starts everything and waits until the API is ready. Each of its calls to the node ends after `rpc_timeout`.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(rpc_timeout: Duration) -> anyhow::Result<Self> {
        Self::start_with(rpc_timeout, Lines::default()).await
    }

    /// As [`ApiHarness::start`], with these lines more in the configuration.
    ///
    /// # Errors
    /// As [`ApiHarness::start`].
    pub async fn start_with(rpc_timeout: Duration, lines: Lines<'_>) -> anyhow::Result<Self> {
        let surroundings = ApiSurroundings::start(rpc_timeout, lines).await?;
        let config = Config::parse(&surroundings.config, "harness.toml".as_ref())?;
        let shutdown = CancellationToken::new();
        // Of a test that fails, the log tells why.
        telemetry::init(telemetry::Format::Text);
        let api = tokio::spawn(services::api(config, shutdown.clone()));
        let harness = Self {
            url: surroundings.url(),
            surroundings,
            shutdown,
            api,
        };
        harness.until_ready().await?;
        Ok(harness)
    }

    async fn until_ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let http = reqwest::Client::builder().no_proxy().build()?;
        loop {
            let answer = http.get(format!("{}/health/ready", self.url)).send().await;
            let seen = match answer {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => answer.text().await?,
                Err(error) => error.to_string(),
            };
            ensure!(begun.elapsed() < PATIENCE, "not ready: {seen}");
            ensure!(!self.api.is_finished(), "the API ended: {seen}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends everything in order.
    ///
    /// # Errors
    /// When the API failed.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        (&mut self.api).await.context("the API panicked")?
    }
}

impl Drop for ApiHarness {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// A pool whose first token is the second of `near`.
fn far_pool(node: &mut RpcNode, near: &Pool) -> Pool {
    let mut pool =
        PoolSpec::of(TokenSpec::spl(RESERVE), TokenSpec::spl(RESERVE)).open(node, "far pool");
    let shared = near.state.mints.token_1;
    pool.state.mints.token_0 = shared;
    node.place(pool.address, ids::PROGRAM_ID, pool.state.encode());
    let vault = pool.tokens.token_0.account(shared, ids::AUTHORITY, RESERVE);
    node.place(pool.state.vaults.token_0, ids::SPL_TOKEN, vault);
    pool
}

fn config(
    rpc_url: &str,
    chain: &RunningChain,
    port: u16,
    rpc_timeout: Duration,
    folder: &TempDir,
    lines: Lines<'_>,
) -> String {
    // A TOML basic string escapes as JSON does.
    let database = serde_json::Value::from(folder.path().join("sluice.db").to_string_lossy());
    let Lines {
        chain: settings,
        api,
    } = lines;
    format!(
        "[chain]\nrpc-url = \"{rpc_url}\"\nrpc-timeout-ms = {}\nexchange = \"stand-in\"\n{settings}\n\
         [[geyser.endpoints]]\nurl = \"{}\"\n\
         [store]\npath = {database}\n\
         [api]\nlisten = \"127.0.0.1:{port}\"\nkeyless = true\n{api}\n\
         [webhooks]\nallow-http-loopback = true\n",
        rpc_timeout.as_millis(),
        chain.endpoint().url,
    )
}

/// The Clock sysvar of a slot, with the time of day.
fn clock(slot: u64) -> Content {
    scripted_pools::clock_at(slot, EPOCH, service_kit::Clock::system().now())
}
