//! The Rust client's examples as programs, given what a user gives them and judged by what the chain says.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use sluice_localnet::{
    Localnet, artifacts::beside_this_executable, rest::QuoteRequest, scene::Token,
};
use solana_keypair::{Keypair, write_keypair_file};
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// How long one example may take. A swap is confirmed within seconds of a chain that runs.
const PATIENCE: Duration = Duration::from_secs(240);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(100);

/// Runs all of them, one after the other: they share a wallet, whose balances are measured.
pub async fn judge(net: &Localnet) -> anyhow::Result<()> {
    let examples = Examples { net };
    examples.a_swap_pays_what_was_quoted().await?;
    examples.a_user_without_sol_swaps().await?;
    examples.a_quote_is_followed().await?;
    examples.a_bot_waits_for_its_price().await?;
    examples.receivers_print_what_they_verified().await
}

struct Examples<'a> {
    net: &'a Localnet,
}

/// What an example has printed of its swap.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    signature: String,
    received: u64,
    quoted: u64,
}

impl Printed {
    /// Reads `SIGNATURE: received N, quoted N`.
    fn read(line: &str) -> anyhow::Result<Self> {
        let parts = line
            .split_once(": received ")
            .and_then(|(signature, rest)| {
                let (received, quoted) = rest.split_once(", quoted ")?;
                Some(Self {
                    signature: signature.to_owned(),
                    received: received.parse().ok()?,
                    quoted: quoted.parse().ok()?,
                })
            });
        parts.with_context(|| format!("the example has printed {line:?}"))
    }
}

impl Examples<'_> {
    async fn a_swap_pays_what_was_quoted(&self) -> anyhow::Result<()> {
        let scene = &self.net.scene;
        let before = self.owned(&scene.usd, &scene.wallet.pubkey()).await?;
        let swapped = self.swap(&scene.sol, &scene.usd, 300_000_000, None).await?;
        let gained = self.owned(&scene.usd, &scene.wallet.pubkey()).await? - before;
        ensure!(
            (swapped.received, swapped.quoted) == (gained, gained),
            "{swapped:?}, gained {gained}"
        );
        Ok(())
    }

    async fn a_user_without_sol_swaps(&self) -> anyhow::Result<()> {
        let scene = &self.net.scene;
        let user = Keypair::new_from_array([11; 32]);
        let file = self.net.dir.root().join("user.json");
        if let Err(error) = write_keypair_file(&user, &file) {
            bail!("cannot write {}: {error}", file.display());
        }
        let user = user.pubkey();
        let gift = self.swap(&scene.sol, &scene.usd, 200_000_000, Some(&user));
        let amount = gift.await?.received;
        let words = [
            self.net.sluice().api().to_owned(),
            text(&file),
            text(&self.net.dir.wallet()),
            scene.usd.mint.to_string(),
            scene.levy.mint.to_string(),
            amount.to_string(),
        ];
        let swapped = Printed::read(&last_line("sponsor", &words).await?)?;
        let received = self.owned(&scene.levy, &user).await?;
        ensure!(
            (swapped.received, swapped.quoted) == (received, received),
            "{swapped:?}, owned {received}"
        );
        ensure!(self.owned(&scene.usd, &user).await? == 0);
        ensure!(self.net.chain().lamports(&user).await? == 0);
        Ok(())
    }

    async fn a_quote_is_followed(&self) -> anyhow::Result<()> {
        let (scene, amount) = (&self.net.scene, 100_000_000);
        let pays = self.market_pays(amount).await?;
        let (input, output) = (scene.sol.mint, scene.usd.mint);
        let words = [
            self.net.sluice().api().to_owned(),
            input.to_string(),
            output.to_string(),
            amount.to_string(),
            // As many quotes: it must come to its end by itself.
            "2".to_owned(),
        ];
        let mut quotes = Running::start("quote", &words, &[])?;
        let line = quotes.line().await?;
        let said = format!(": {pays} for {amount}, at least ");
        ensure!(line.contains(&said), "{line}, the market pays {pays}");
        // With more of the output in the pool, there is another quote.
        self.swap(&scene.usd, &scene.sol, 20_000_000, None).await?;
        let line = quotes.line().await?;
        let said = format!(": {} for {amount}, ", self.market_pays(amount).await?);
        ensure!(line.contains(&said), "{line} is not{said}");
        quotes.end().await
    }

    async fn a_bot_waits_for_its_price(&self) -> anyhow::Result<()> {
        let scene = &self.net.scene;
        let (wallet, amount) = (scene.wallet.pubkey(), 100_000_000);
        let wanted = self.market_pays(amount).await? + 1;
        let before = self.owned(&scene.usd, &wallet).await?;
        let mut words = self.words(&scene.sol, &scene.usd, amount);
        words.push(wanted.to_string());
        let mut bot = Running::start("bot", &words, &[])?;
        let first = bot.line().await?;
        ensure!(first.contains("the market pays"), "{first}");
        // More of the output in the pool, and the price is there.
        let moved = 50_000_000;
        self.swap(&scene.usd, &scene.sol, moved, None).await?;
        let mut last = first;
        while last.contains("the market pays") {
            last = bot.line().await?;
        }
        let swapped = Printed::read(&last)?;
        ensure!(swapped.received >= wanted, "{swapped:?}, wanted {wanted}");
        let after = self.owned(&scene.usd, &wallet).await?;
        ensure!(
            after + moved - before == swapped.received,
            "{swapped:?}, from {before} over {moved} less to {after}"
        );
        Ok(())
    }

    /// One that knows the secret, and one that knows a public key and nothing that signs.
    async fn receivers_print_what_they_verified(&self) -> anyhow::Result<()> {
        let scene = &self.net.scene;
        let mut receivers = [self.receiver("v1").await?, self.receiver("v1a").await?];
        let swapped = self.swap(&scene.sol, &scene.usd, 100_000_000, None).await?;
        let line = format!("Swapped in {}", swapped.signature);
        for (receiver, ..) in &mut receivers {
            while !receiver.line().await?.ends_with(&line) {}
        }
        for (_running, url, id) in &receivers {
            let http = reqwest::Client::builder().no_proxy().build()?;
            let answer = http.post(url).body("{}").send().await?;
            ensure!(answer.status() == 400, "{}", answer.status());
            self.call(Method::DELETE, &format!("/api/webhooks/{id}"), None)
                .await?;
        }
        Ok(())
    }

    /// The receiver of a webhook whose deliveries are signed by one version alone, when the filter is in force.
    async fn receiver(&self, version: &str) -> anyhow::Result<(Running, String, String)> {
        // The receiver must know what verifies before it listens, so the webhook learns its address after it is created.
        let body = json!({
            "url": "http://127.0.0.1:9/", "active": false, "events": ["programEvent"],
            "filters": { "programs": [swap_guard_interface::PROGRAM_ID.to_string()] },
            "delivery": { "signatures": [version] },
        });
        let created = self.call(Method::POST, "/api/webhooks", Some(body)).await?;
        let webhook = &created["webhook"];
        let id = webhook["id"].as_str().context("an id")?;
        let verifies = match version {
            "v1a" => &webhook["status"]["publicKey"],
            _ => &created["secret"],
        };
        let verifies = verifies.as_str().context("what verifies")?;
        let environment = [("WEBHOOK_SECRET", verifies)];
        let words = ["127.0.0.1:0".to_owned()];
        let mut running = Running::start("webhook_receiver", &words, &environment)?;
        let line = running.line().await?;
        let address = line.strip_prefix("listening on ").context("an address")?;
        let url = format!("http://{address}/");
        let path = format!("/api/webhooks/{id}");
        let change = json!({ "url": url, "active": true });
        self.call(Method::PATCH, &path, Some(change)).await?;
        let begun = Instant::now();
        loop {
            let known = self.call(Method::GET, &path, None).await?;
            if known["status"]["filter"]["inForceSlot"].is_u64() {
                return Ok((running, url, id.to_owned()));
            }
            ensure!(begun.elapsed() < PATIENCE, "still {known}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// What an amount of SOL gives in USDL now.
    async fn market_pays(&self, amount: u64) -> anyhow::Result<u64> {
        let asked = QuoteRequest {
            input_mint: self.net.scene.sol.mint,
            output_mint: self.net.scene.usd.mint,
            amount,
            slippage_bps: 50,
        };
        Ok(self.net.sluice().quote(&asked).await?.quote.out_amount)
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        self.net.sluice().request(method, path, body).await
    }

    async fn owned(&self, token: &Token, owner: &Pubkey) -> anyhow::Result<u64> {
        self.net.chain().tokens(&token.account_of(owner)).await
    }

    /// Runs the example that swaps.
    async fn swap(
        &self,
        input: &Token,
        output: &Token,
        amount: u64,
        receiver: Option<&Pubkey>,
    ) -> anyhow::Result<Printed> {
        let mut words = self.words(input, output, amount);
        words.extend(receiver.map(ToString::to_string));
        Printed::read(&last_line("swap", &words).await?)
    }

    /// What examples that swap are given first.
    fn words(&self, input: &Token, output: &Token, amount: u64) -> Vec<String> {
        vec![
            self.net.sluice().api().to_owned(),
            text(&self.net.dir.wallet()),
            input.mint.to_string(),
            output.mint.to_string(),
            amount.to_string(),
        ]
    }
}

/// An example that runs, until it is dropped.
struct Running {
    name: &'static str,
    lines: Lines<BufReader<ChildStdout>>,
    child: Child,
}

impl Running {
    fn start(
        name: &'static str,
        words: &[String],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let mut command = command(name)?;
        command.args(words).envs(environment.iter().copied());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("its output")?;
        Ok(Self {
            name,
            lines: BufReader::new(stdout).lines(),
            child,
        })
    }

    /// The next line that it prints.
    async fn line(&mut self) -> anyhow::Result<String> {
        let name = self.name;
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.with_context(|| format!("{name} printed nothing in time"))??;
        let line = line.with_context(|| format!("{name} ended"))?;
        println!("{name}: {line}");
        Ok(line)
    }

    /// Waits for its end, which must be a good one.
    async fn end(mut self) -> anyhow::Result<()> {
        let name = self.name;
        let ended = timeout(PATIENCE, self.child.wait()).await;
        let status = ended.with_context(|| format!("{name} did not end in time"))??;
        ensure!(status.success(), "{name}: {status}");
        Ok(())
    }
}

/// Runs an example to its end, which must be a good one, and returns the last line that it printed.
async fn last_line(name: &str, words: &[String]) -> anyhow::Result<String> {
    let ended = timeout(PATIENCE, command(name)?.args(words).output()).await;
    let ended = ended.with_context(|| format!("{name} did not end in time"))??;
    let said = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success(), "{name}: {}: {said}", ended.status);
    let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
    println!("{name}: {}", printed.trim());
    let last = printed.lines().last();
    last.map(str::to_owned)
        .with_context(|| format!("{name} printed nothing"))
}

fn command(name: &str) -> anyhow::Result<Command> {
    let program: PathBuf = beside_this_executable("examples").join(name);
    ensure!(
        program.is_file(),
        "{} does not exist; `cargo xtask clients` builds it",
        program.display()
    );
    let mut command = Command::new(program);
    // Everything is on this machine, whatever proxy the environment names.
    command.env("NO_PROXY", "127.0.0.1");
    command.stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
