//! The service's lookup table on a real chain: made and extended by `sluice lookup-table`, used by swaps, closed.

use std::{
    ffi::OsString,
    fs,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sluice_localnet::{
    Artifacts,
    artifacts::Overrides,
    chain::sign_encoded,
    process::OwnedProcess,
    rest::{Part, QuoteRequest, swap_body},
    scene::LAMPORTS_PER_SOL,
};
use solana_address_lookup_table_interface::{
    instruction::deactivate_lookup_table, state::AddressLookupTable,
};
use solana_keypair::{Keypair, write_keypair_file};
use solana_pubkey::Pubkey;
use solana_signer::Signer;

use crate::net::TestNet;

/// How long a service may take to be ready, and to see what became of its table once that is finalized, 32 slots later.
const PATIENCE: Duration = Duration::from_secs(90);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_table_that_the_command_makes_shortens_swaps_until_it_is_closed() -> anyhow::Result<()> {
    let mut net = TestNet::start().await?;
    let owner = net.net.dir.wallet();
    let lamports = net.lamports().await?;
    let made = net.command(&owner, &[])?;
    let (table, said) = printed(&made)?;
    ensure!(said.contains("cost: 5000 lamports of fees"), "{said}");
    let account = net.net.chain().rpc().get_account(&table).await?;
    let paid = lamports - net.lamports().await?;
    ensure!(paid == account.lamports + 5_000, "{paid}: {said}");
    ensure!(
        said.contains(&format!("and {} of rent", account.lamports)),
        "{said}"
    );
    let first = net.addresses(&table).await?;
    ensure!(first.contains(&cpmm::ids::AUTHORITY) && first.contains(&cpmm::ids::AMM_CONFIG_0));

    // Another wallet's key pair is refused with the reason, and what is missing alone is added.
    let other = net.net.dir.root().join("other.json");
    write_keypair_file(&Keypair::new(), &other).map_err(|error| anyhow::anyhow!("{error}"))?;
    let extend = ["--extend", &table.to_string()].map(str::to_owned);
    let refused = net.command(&other, &extend)?;
    let fault = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(
        !refused.status.success() && fault.contains("give the other key pair"),
        "{fault}"
    );
    let added = Pubkey::new_unique();
    let more = [&extend[..], &["--address".to_owned(), added.to_string()]].concat();
    let (extended, said) = printed(&net.command(&owner, &more)?)?;
    ensure!(
        extended == table && said.contains("1 addresses added"),
        "{said}"
    );
    let expected: Vec<_> = first.into_iter().chain([added]).collect();
    ensure!(net.addresses(&table).await? == expected);

    let mut service = net.with_table(&table).await?;
    let without = net.swap("legacy").await?;
    ensure!(without["lookupTable"].is_null());
    net.until(|answer| answer["lookupTable"] == json!(table.to_string()))
        .await?;
    let with = net.swap("0").await?;
    let saved =
        without["size"].as_u64().context("a size")? - with["size"].as_u64().context("a size")?;
    ensure!(saved > 100, "{saved} bytes");
    net.send(&with).await?;

    let close = deactivate_lookup_table(table, net.net.scene.wallet.pubkey());
    let chain = net.net.chain();
    let close = chain.sign(&[close], &net.net.scene.wallet).await?;
    let closed = chain.send_and_confirm(&close, true).await?;
    ensure!(closed.error.is_none(), "{:?}", closed.error);
    net.until(|answer| answer["lookupTable"].is_null()).await?;
    net.send(&net.swap("0").await?).await?;
    let log = fs::read_to_string(net.net.dir.root().join("with-table.log"))?;
    ensure!(
        log.contains("is used") && log.contains("it is being closed since slot"),
        "{log}"
    );
    service.stop()?;
    net.stop().await
}

/// The address that the command printed, and what it said beside.
fn printed(output: &Output) -> anyhow::Result<(Pubkey, String)> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{said}");
    let address = std::str::from_utf8(&output.stdout)?.trim().parse()?;
    Ok((address, said))
}

impl TestNet {
    fn command(&self, keypair: &Path, more: &[String]) -> anyhow::Result<Output> {
        let artifacts = Artifacts::find(&Overrides::default())?;
        let mut command = Command::new(artifacts.sluice);
        command
            .args(["lookup-table", "create", "--keypair"])
            .arg(keypair)
            .arg("--config")
            .arg(self.net.dir.sluice_config())
            .args(more);
        Ok(command.output()?)
    }

    async fn lamports(&self) -> anyhow::Result<u64> {
        let wallet = self.net.scene.wallet.pubkey();
        self.net.chain().lamports(&wallet).await
    }

    async fn addresses(&self, table: &Pubkey) -> anyhow::Result<Vec<Pubkey>> {
        let account = self.net.chain().rpc().get_account(table).await?;
        Ok(AddressLookupTable::deserialize(&account.data)?
            .addresses
            .to_vec())
    }

    /// Ends the service and starts one that uses the table.
    async fn with_table(&mut self, table: &Pubkey) -> anyhow::Result<OwnedProcess> {
        self.net.service.process.stop()?;
        let path = self.net.dir.sluice_config();
        let text = fs::read_to_string(&path)?;
        let line = format!("[chain]\nlookup-table = \"{table}\"\n");
        fs::write(&path, text.replacen("[chain]\n", &line, 1))?;
        let arguments: [OsString; 3] = ["serve".into(), "--config".into(), path.into_os_string()];
        let artifacts = Artifacts::find(&Overrides::default())?;
        let log = self.net.dir.root().join("with-table.log");
        let service = OwnedProcess::spawn("with-table", &artifacts.sluice, &arguments, &[], &log)?;
        let begun = Instant::now();
        loop {
            let seen = self.net.sluice().ready(Part::Api).await;
            if seen
                .as_ref()
                .is_ok_and(|health| health.status == StatusCode::OK)
            {
                return Ok(service);
            }
            ensure!(begun.elapsed() < PATIENCE, "not ready: {seen:?}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// A transaction through two pools for the scene's wallet.
    async fn swap(&self, version: &str) -> anyhow::Result<Value> {
        let scene = &self.net.scene;
        let request = QuoteRequest {
            input_mint: scene.sol.mint,
            output_mint: scene.levy.mint,
            amount: LAMPORTS_PER_SOL / 10,
            slippage_bps: 300,
        };
        let sluice = self.net.sluice();
        let quote = sluice.quote_with(&request, "&maxHops=2").await?.quote;
        ensure!(quote.pool.contains(','), "{quote:?}");
        let mut body = swap_body(&quote, &scene.wallet.pubkey(), 0);
        body["transactionVersion"] = json!(version);
        sluice.swap(body).await
    }

    /// Asks until an answer is as wanted.
    async fn until(&self, good: impl Fn(&Value) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let answer = self.swap("0").await?;
            if good(&answer) {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "{answer}");
            tokio::time::sleep(POLL).await;
        }
    }

    async fn send(&self, answer: &Value) -> anyhow::Result<()> {
        let text = answer["transaction"].as_str().context("a transaction")?;
        let signed = sign_encoded(text, &self.net.scene.wallet)?;
        let done = self.net.chain().send_and_confirm(&signed, true).await?;
        ensure!(done.error.is_none(), "{:?}: {:#?}", done.error, done.logs);
        Ok(())
    }
}
