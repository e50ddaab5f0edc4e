//! Rows of the swap matrix: a wallet's state, a swap, and the balances afterwards.

use anyhow::{Context, ensure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use cpmm::ids;
use serde_json::{Value, json};
use sluice_localnet::{
    chain::{Confirmed, sign_encoded},
    rest::QuoteRequest,
    scene::{LAMPORTS_PER_SOL, Token},
};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::Swapped;

use super::bench::Bench;

/// What each wallet owns at first, lamports.
const LAMPORTS: u64 = LAMPORTS_PER_SOL;

/// What it has wrapped at first, if it has an account for that: less than it swaps, so that some must be wrapped.
const WRAPPED: u64 = 40_000_000;

/// The same when nothing will be wrapped: enough.
const WRAPPED_ENOUGH: u64 = 250_000_000;

/// What it swaps of SOL, lamports, and of the tokens, thousandths of one.
const SOL_IN: u64 = 100_000_000;
const TOKEN_IN_THOUSANDTHS: u64 = 1_500;

/// Ceiling of the priority fee, lamports.
const PRIORITY_FEE: u64 = 7_777;

/// The most that a compute unit limit may be over what was used, percent.
const MOST_OVER: u64 = 15;

/// A state of a wallet and a way to swap.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    from: Token,
    to: Token,
    /// Whether the output's associated account is there.
    output_exists: bool,
    /// Whether a wrapped SOL account with a balance is there.
    wrapped_exists: bool,
    wrap: bool,
    legacy: bool,
}

/// What a wallet has: lamports and balances; `None` where there is no account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Belongings {
    lamports: u64,
    input: Option<u64>,
    output: Option<u64>,
    wrapped: Option<u64>,
}

impl Row {
    /// Every row.
    pub fn all(bench: &Bench<'_>) -> Vec<Self> {
        let scene = &bench.net.scene;
        let pairs = [
            (scene.sol, scene.usd),
            (scene.usd, scene.sol),
            (scene.alfa, scene.beta),
            (scene.usd, scene.levy),
            (scene.levy, scene.usd),
            (scene.levy, bench.twin),
            (bench.twin, scene.levy),
        ];
        let mut rows = Vec::new();
        for (from, to) in pairs {
            for bits in 0..16u32 {
                let flag = |bit: u32| bits & (1 << bit) != 0;
                let row = Self {
                    from,
                    to,
                    output_exists: flag(0),
                    wrapped_exists: flag(1),
                    wrap: flag(2),
                    legacy: flag(3),
                };
                if row.is_possible() {
                    rows.push(row);
                }
            }
        }
        rows
    }

    /// For SOL out the wrapped account is the output's; SOL in without wrapping must be there already.
    fn is_possible(&self) -> bool {
        let sol_out = self.to.mint == ids::WRAPPED_SOL;
        let sol_in = self.from.mint == ids::WRAPPED_SOL;
        (!sol_out || self.output_exists == self.wrapped_exists)
            && (!sol_in || self.wrap || self.wrapped_exists)
    }

    fn amount_in(&self) -> u64 {
        if self.from.mint == ids::WRAPPED_SOL {
            SOL_IN
        } else {
            self.from.units(1) * TOKEN_IN_THOUSANDTHS / 1_000
        }
    }

    /// Makes the wallet, swaps, and compares.
    pub async fn run(&self, bench: &Bench<'_>) -> anyhow::Result<()> {
        let sol = bench.net.scene.sol;
        let mut holdings = Vec::new();
        if self.from.mint != sol.mint {
            holdings.push((self.from, self.amount_in() + 5));
        }
        if self.output_exists && self.to.mint != sol.mint {
            holdings.push((self.to, 11));
        }
        if self.wrapped_exists {
            let enough = !self.wrap && self.from.mint == sol.mint;
            holdings.push((sol, if enough { WRAPPED_ENOUGH } else { WRAPPED }));
        }
        let wallet = bench.wallet(LAMPORTS, &holdings).await?;
        let before = self.belongings(bench, &wallet.pubkey()).await?;
        let answer = self.ask(bench, &wallet.pubkey()).await?;
        let receipt = send(bench, &answer, &wallet).await?;
        let after = self.belongings(bench, &wallet.pubkey()).await?;
        self.compare(before, after, &answer, &receipt)
    }

    async fn belongings(&self, bench: &Bench<'_>, wallet: &Pubkey) -> anyhow::Result<Belongings> {
        let chain = bench.chain();
        let tokens = async |token: &Token| {
            let account = token.account_of(wallet);
            if chain.lamports(&account).await? == 0 {
                return anyhow::Ok(None);
            }
            Ok(Some(chain.tokens(&account).await?))
        };
        Ok(Belongings {
            lamports: chain.lamports(wallet).await?,
            input: tokens(&self.from).await?,
            output: tokens(&self.to).await?,
            wrapped: tokens(&bench.net.scene.sol).await?,
        })
    }

    async fn ask(&self, bench: &Bench<'_>, wallet: &Pubkey) -> anyhow::Result<Value> {
        let request = QuoteRequest {
            input_mint: self.from.mint,
            output_mint: self.to.mint,
            amount: self.amount_in(),
            // Rows of the same pool move it under each other.
            slippage_bps: 200,
        };
        let quote = bench.sluice().quote(&request).await?.quote;
        let body = json!({
            "quote": quote,
            "userPublicKey": wallet.to_string(),
            "wrapAndUnwrapSol": self.wrap,
            "priorityFeeLamports": PRIORITY_FEE,
            "asLegacyTransaction": self.legacy,
            "checkBalance": true,
        });
        let answer = bench.sluice().swap(body).await?;
        ensure!(answer["quote"]["minimumOut"] == json!(quote.minimum_out));
        Ok(answer)
    }

    fn compare(
        &self,
        before: Belongings,
        after: Belongings,
        answer: &Value,
        receipt: &Confirmed,
    ) -> anyhow::Result<()> {
        let costs = &answer["costs"];
        let lamports = |value: &Value| value.as_u64().context("an amount of lamports");
        let fee = lamports(&costs["baseFeeLamports"])? + lamports(&costs["priorityFeeLamports"])?;
        ensure!(receipt.fee == fee, "{} instead of {fee}", receipt.fee);
        ensure!(fee <= 5_000 + PRIORITY_FEE);
        check_units(answer, receipt)?;
        let rents = costs["rent"].as_array().context("rents")?;
        let mut kept = 0;
        for rent in rents
            .iter()
            .filter(|rent| rent["comesBack"] == json!(false))
        {
            kept += lamports(&rent["lamports"])?;
        }
        let wrapped = lamports(&costs["wrappedLamports"])?;
        let received = swapped(receipt)?.received;
        let unwraps = self.wrap && self.to.mint == ids::WRAPPED_SOL;
        let native = if unwraps { received } else { 0 };
        let lamports = before.lamports - fee - kept - wrapped + native;
        let sol_output = if unwraps {
            json!("unwrapped")
        } else {
            Value::Null
        };
        ensure!(answer["solOutput"] == sol_output, "{}", answer["solOutput"]);
        let input = before.input.map(|held| held + wrapped - self.amount_in());
        let output = if unwraps {
            before.output
        } else {
            Some(before.output.unwrap_or(0) + received)
        };
        let expected = Belongings {
            lamports,
            input,
            output,
            wrapped: match (self.from.mint, self.to.mint) {
                (ids::WRAPPED_SOL, _) => input,
                (_, ids::WRAPPED_SOL) => output,
                _ => before.wrapped,
            },
        };
        ensure!(after == expected, "{after:?} instead of {expected:?}");
        Ok(())
    }
}

/// What the transaction was expected to use, beside what it left for wallets to append, against what it used.
pub fn check_units(answer: &Value, receipt: &Confirmed) -> anyhow::Result<()> {
    let limit = answer["computeUnits"]["learned"]
        .as_u64()
        .context("a limit")?;
    let used = receipt.compute_units;
    ensure!(
        limit >= used && limit * 100 <= used * (100 + MOST_OVER),
        "the limit is {limit}, {used} were used"
    );
    Ok(())
}

/// What the guard measured.
pub fn swapped(receipt: &Confirmed) -> anyhow::Result<Swapped> {
    receipt
        .logs
        .iter()
        .filter_map(|line| line.strip_prefix("Program data: "))
        .filter_map(|data| BASE64.decode(data).ok())
        .find_map(|data| Swapped::decode(&data))
        .context("the guard says what was spent and received")
}

async fn send(bench: &Bench<'_>, answer: &Value, wallet: &Keypair) -> anyhow::Result<Confirmed> {
    let text = answer["transaction"].as_str().context("a transaction")?;
    let size = BASE64.decode(text)?.len();
    ensure!(
        answer["size"] == json!(size) && size <= 1_232,
        "{size} bytes"
    );
    let transaction = sign_encoded(text, wallet)?;
    let message = &transaction.message;
    let programs: Vec<String> = message
        .instructions()
        .iter()
        .map(|instruction| {
            let index = usize::from(instruction.program_id_index);
            message.static_account_keys()[index].to_string()
        })
        .collect();
    let manifest = answer["instructions"].as_array().context("a manifest")?;
    let stated: Vec<&str> = manifest
        .iter()
        .filter_map(|entry| entry["program"].as_str())
        .collect();
    ensure!(programs == stated, "{programs:?} but {stated:?} are stated");
    let receipt = bench.chain().send_and_confirm(&transaction, true).await?;
    ensure!(
        receipt.error.is_none(),
        "{:?}: {:#?}",
        receipt.error,
        receipt.logs
    );
    Ok(receipt)
}
