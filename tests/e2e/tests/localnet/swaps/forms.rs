//! Exact outputs, two hops, other receivers, other fee payers and platforms' fees on a real chain: who paid and who got what.

use anyhow::{Context, ensure};
use cpmm::ids;
use serde_json::{Value, json};
use sluice_localnet::{
    chain::{Confirmed, sign_encoded_by},
    rest::QuoteRequest,
    scene::{LAMPORTS_PER_SOL, TRANSFER_FEE_BASIS_POINTS, Token},
};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::Swapped;

use super::{
    bench::Bench,
    matrix::{check_units, swapped},
};

/// What a wallet that pays owns at first, lamports.
const LAMPORTS: u64 = LAMPORTS_PER_SOL;

/// What a middle account holds that is there before, smallest units.
const MIDDLE: u64 = 777;

/// Allowed slippage, basis points: rows of the same pool move it under each other.
const SLIPPAGE_BPS: u16 = 300;

/// Ceiling of the priority fee, lamports.
const PRIORITY_FEE: u64 = 7_777;

/// What a platform takes of the input, basis points: no divisor of the amounts, so that what is rounded off shows.
const PLATFORM_FEE_BPS: u64 = 37;

/// What a platform's account holds that is there before, smallest units.
const PLATFORM: u64 = 5;

/// The instruction that a row takes.
#[derive(Clone, Copy, Debug)]
enum Form {
    ExactIn,
    ExactOut,
    /// Through this token; whether the wallet has an account of it.
    TwoHops(Token, bool),
}

/// A swap, and whose wallets take part in it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    from: Token,
    to: Token,
    form: Form,
    /// Whether another wallet gets the output.
    receiver: bool,
    /// Whether another wallet pays fees and rents.
    fee_payer: bool,
    /// `transactionVersion`.
    version: &'static str,
    /// Whether it carries a nonce that the fee payer advances.
    nonce: bool,
    /// Whether the platform that takes a fee has an account of the input token; `None` where there is no platform.
    platform: Option<bool>,
}

/// The version of a row: those through one pool take turns, so that each meets each form, receiver and fee payer.
fn version(number: usize, form: Form, bits: u8) -> &'static str {
    match (form, bits) {
        // Not all of them fit into the older ones.
        (_, 3) => "1",
        (Form::TwoHops(..), 0) => "0",
        (Form::TwoHops(..), _) => "legacy",
        (Form::ExactIn | Form::ExactOut, _) => {
            ["0", "legacy", "1"][(number + usize::from(bits)) % 3]
        }
    }
}

const fn is_two_hops(form: Form) -> bool {
    matches!(form, Form::TwoHops(..))
}

/// The wallets of a row.
struct Wallets {
    user: Keypair,
    fee_payer: Keypair,
    receiver: Pubkey,
    platform: Option<Pubkey>,
}

/// What the wallets have; `None` where there is no account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Belongings {
    user: u64,
    fee_payer: u64,
    receiver: u64,
    input: Option<u64>,
    middle: Option<u64>,
    /// The user's.
    output: Option<u64>,
    /// The other receiver's.
    received: Option<u64>,
    /// The platform's lamports, and its tokens of the input.
    platform: u64,
    platform_input: Option<u64>,
}

impl Row {
    /// Every row: each form with and without a receiver, a fee payer and a platform.
    pub fn all(bench: &Bench<'_>) -> Vec<Self> {
        let scene = &bench.net.scene;
        let one_pool = [
            (scene.sol, scene.usd),
            (scene.usd, scene.sol),
            (scene.alfa, scene.beta),
            (scene.levy, scene.usd),
        ]
        .into_iter()
        .flat_map(|(from, to)| [Form::ExactIn, Form::ExactOut].map(|form| (from, to, form)));
        let two_pools = [
            (scene.sol, scene.usd, scene.levy),
            (scene.levy, scene.usd, scene.sol),
            (scene.usd, scene.levy, bench.twin),
        ]
        .into_iter()
        .flat_map(|(from, middle, to)| {
            [false, true].map(|there| (from, to, Form::TwoHops(middle, there)))
        });
        let swaps = one_pool.chain(two_pools).enumerate();
        let swaps = swaps.flat_map(|(number, (from, to, form))| {
            (0..4u8).map(move |bits| Self {
                from,
                to,
                form,
                receiver: bits & 1 != 0,
                fee_payer: bits & 2 != 0,
                version: version(number, form, bits),
                nonce: bits == 3 || (bits == 0 && number % 2 == 0 && !is_two_hops(form)),
                platform: None,
            })
        });
        let swaps: Vec<Self> = swaps.collect();
        // Its account is there where another wallet gets the output, and created where one wallet does all or three do it.
        let with_platform = swaps.iter().enumerate().filter(|(n, _)| n % 4 != 2);
        let with_platform = with_platform.map(|(n, row)| Self {
            // Not all of them fit into the older ones.
            version: if is_two_hops(row.form) {
                "1"
            } else {
                row.version
            },
            nonce: false,
            platform: Some(n % 4 == 1),
            ..*row
        });
        with_platform.chain(swaps.iter().copied()).collect()
    }

    /// Whether the platform gets its fee as native SOL.
    fn pays_platform_in_sol(&self) -> bool {
        self.from.mint == ids::WRAPPED_SOL
    }

    /// Makes the wallets, swaps, and compares.
    pub async fn run(&self, bench: &Bench<'_>) -> anyhow::Result<()> {
        let wallets = self.wallets(bench).await?;
        let before = self.belongings(bench, &wallets).await?;
        let answer = self.ask(bench, &wallets).await?;
        let receipt = send(bench, &answer, &wallets).await?;
        check_units(&answer, &receipt)?;
        check_simulation(&answer, &receipt)?;
        let after = self.belongings(bench, &wallets).await?;
        let expected = self.expected(before, &answer, &receipt)?;
        ensure!(after == expected, "{after:?} instead of {expected:?}");
        Ok(())
    }

    async fn wallets(&self, bench: &Bench<'_>) -> anyhow::Result<Wallets> {
        let mut holdings = Vec::new();
        if self.from.mint != ids::WRAPPED_SOL {
            holdings.push((self.from, self.from.units(100)));
        }
        if let Form::TwoHops(middle, true) = self.form {
            holdings.push((middle, MIDDLE));
        }
        // With another fee payer, one who swaps tokens needs no SOL at all.
        let lamports = if self.fee_payer && self.from.mint != ids::WRAPPED_SOL {
            0
        } else {
            LAMPORTS
        };
        let user = bench.wallet(lamports, &holdings).await?;
        let fee_payer = if self.fee_payer {
            bench.wallet(LAMPORTS, &[]).await?
        } else {
            user.insecure_clone()
        };
        let receiver = if self.receiver {
            Keypair::new().pubkey()
        } else {
            user.pubkey()
        };
        let platform = match self.platform {
            None => None,
            // The chain takes lamports only to a wallet that has some already.
            Some(_) if self.pays_platform_in_sol() => Some(bench.wallet(LAMPORTS, &[]).await?),
            Some(true) => Some(bench.wallet(0, &[(self.from, PLATFORM)]).await?),
            Some(false) => Some(Keypair::new()),
        };
        Ok(Wallets {
            user,
            fee_payer,
            receiver,
            platform: platform.map(|platform| platform.pubkey()),
        })
    }

    async fn belongings(&self, bench: &Bench<'_>, wallets: &Wallets) -> anyhow::Result<Belongings> {
        let chain = bench.chain();
        let tokens = async |token: &Token, wallet: &Pubkey| {
            let account = token.account_of(wallet);
            if chain.lamports(&account).await? == 0 {
                return anyhow::Ok(None);
            }
            Ok(Some(chain.tokens(&account).await?))
        };
        let user = wallets.user.pubkey();
        Ok(Belongings {
            user: chain.lamports(&user).await?,
            fee_payer: chain.lamports(&wallets.fee_payer.pubkey()).await?,
            receiver: chain.lamports(&wallets.receiver).await?,
            input: tokens(&self.from, &user).await?,
            middle: match self.form {
                Form::TwoHops(middle, _) => tokens(&middle, &user).await?,
                Form::ExactIn | Form::ExactOut => None,
            },
            output: tokens(&self.to, &user).await?,
            received: tokens(&self.to, &wallets.receiver).await?,
            platform: match &wallets.platform {
                Some(platform) => chain.lamports(platform).await?,
                None => 0,
            },
            platform_input: match &wallets.platform {
                Some(platform) => tokens(&self.from, platform).await?,
                None => None,
            },
        })
    }

    async fn ask(&self, bench: &Bench<'_>, wallets: &Wallets) -> anyhow::Result<Value> {
        let (fixed, options) = match self.form {
            Form::ExactIn => (self.from, ""),
            Form::ExactOut => (self.to, "&swapMode=ExactOut"),
            Form::TwoHops(..) => (self.from, "&maxHops=2"),
        };
        let request = QuoteRequest {
            input_mint: self.from.mint,
            output_mint: self.to.mint,
            // A tenth of a SOL, or one and a half of a token.
            amount: if fixed.mint == ids::WRAPPED_SOL {
                LAMPORTS / 10
            } else {
                fixed.units(3) / 2
            },
            slippage_bps: SLIPPAGE_BPS,
        };
        // Before the quote, since it takes some slots, in which other rows move the pool.
        let nonce = if self.nonce {
            let authority = wallets.fee_payer.pubkey();
            Some(bench.nonce_account(&authority).await?)
        } else {
            None
        };
        let options = match wallets.platform {
            Some(_) => format!("{options}&platformFeeBps={PLATFORM_FEE_BPS}"),
            None => options.to_owned(),
        };
        let quote = bench.sluice().quote_with(&request, &options).await?.quote;
        ensure!(quote.pool.contains(',') == matches!(self.form, Form::TwoHops(..)));
        let mut body = json!({
            "quote": quote,
            "userPublicKey": wallets.user.pubkey().to_string(),
            "priorityFeeLamports": PRIORITY_FEE,
            "transactionVersion": self.version,
            "checkBalance": true,
            "simulate": true,
        });
        if let Some(nonce) = nonce {
            body["nonceAccount"] = json!(nonce.to_string());
        }
        if matches!(self.form, Form::ExactOut) {
            body["swapMode"] = json!("ExactOut");
        }
        if self.receiver {
            body["receiver"] = json!(wallets.receiver.to_string());
        }
        if self.fee_payer {
            body["feePayer"] = json!(wallets.fee_payer.pubkey().to_string());
        }
        if let Some(platform) = &wallets.platform {
            body["platformFeeBps"] = json!(PLATFORM_FEE_BPS);
            body["feeWallet"] = json!(platform.to_string());
        }
        let answer = bench.sluice().swap(body).await?;
        self.check_quote(json!(quote), &answer)?;
        Ok(answer)
    }

    /// What is signed for is the quote as it was. What an exact input pays is said as of now, when other rows may have moved the pool.
    fn check_quote(&self, mut quote: Value, answer: &Value) -> anyhow::Result<()> {
        let answered = &answer["quote"];
        if !matches!(self.form, Form::ExactOut) {
            let number = |value: &Value| value.as_u64().context("an amount");
            ensure!(number(&answered["outAmount"])? >= number(&answered["minimumOut"])?);
            quote["outAmount"] = answered["outAmount"].clone();
        }
        ensure!(*answered == quote, "{answered} instead of {quote}");
        Ok(())
    }

    /// What belongs to whom afterwards, by what the answer says of the costs and the guard of the swap.
    fn expected(
        &self,
        before: Belongings,
        answer: &Value,
        receipt: &Confirmed,
    ) -> anyhow::Result<Belongings> {
        let costs = &answer["costs"];
        let lamports = |value: &Value| value.as_u64().context("an amount of lamports");
        let fee = lamports(&costs["baseFeeLamports"])? + lamports(&costs["priorityFeeLamports"])?;
        ensure!(receipt.fee == fee, "{} instead of {fee}", receipt.fee);
        let mut kept = 0;
        for rent in costs["rent"].as_array().context("rents")? {
            if rent["comesBack"] == json!(false) {
                kept += lamports(&rent["lamports"])?;
            }
        }
        let Swapped {
            spent, received, ..
        } = swapped(receipt)?;
        let most = lamports(&answer["quote"]["amountIn"])?;
        let platform_fee = match self.platform {
            Some(_) => most * PLATFORM_FEE_BPS / 10_000,
            None => 0,
        };
        if matches!(self.form, Form::ExactOut) {
            ensure!(answer["quote"]["outAmount"] == json!(received));
            ensure!(most > spent + platform_fee);
        } else {
            ensure!(
                most == spent + platform_fee,
                "{most} is not {spent} and {platform_fee}"
            );
        }
        let spent = spent + platform_fee;
        let mut after = before;
        if self.platform.is_some() {
            ensure!(platform_fee > 0 && answer["platformFee"] == json!(platform_fee));
            self.charge(platform_fee, &mut after);
        }
        after.fee_payer -= fee + kept;
        if !self.fee_payer {
            after.user = after.fee_payer;
        }
        if self.from.mint == ids::WRAPPED_SOL {
            after.user -= spent;
        } else {
            after.input = before.input.map(|held| held - spent);
        }
        if self.to.mint == ids::WRAPPED_SOL {
            if self.receiver {
                after.receiver += received;
            } else {
                after.user += received;
            }
        } else {
            after.received = Some(before.received.unwrap_or(0) + received);
        }
        if let Form::TwoHops(middle, false) = self.form
            && middle.has_transfer_fee
        {
            // It keeps what was withheld, so it cannot be closed.
            after.middle = Some(0);
        }
        // One wallet in several parts has one balance.
        if !self.fee_payer {
            after.fee_payer = after.user;
        }
        if !self.receiver {
            (after.receiver, after.output) = (after.user, after.received);
        }
        Ok(after)
    }
}

impl Row {
    /// The platform gets its fee.
    fn charge(&self, fee: u64, after: &mut Belongings) {
        if self.pays_platform_in_sol() {
            after.platform += fee;
            return;
        }
        let withheld = if self.from.has_transfer_fee {
            (fee * u64::from(TRANSFER_FEE_BASIS_POINTS)).div_ceil(10_000)
        } else {
            0
        };
        after.platform_input = Some(after.platform_input.unwrap_or(0) + fee - withheld);
    }
}

/// The node executed the same before, in a state that may be older by the swaps of other rows.
fn check_simulation(answer: &Value, receipt: &Confirmed) -> anyhow::Result<()> {
    let simulation = &answer["simulation"];
    let number = |value: &Value| value.as_u64().context("a number");
    let (simulated, limit) = (&simulation["computeUnits"], &answer["computeUnitLimit"]);
    ensure!(number(simulated)? <= number(limit)?, "{simulation}");
    let (loaded, most) = (
        &simulation["loadedAccountsDataSize"],
        &answer["loadedAccountsDataSizeLimit"],
    );
    ensure!(number(loaded)? <= number(most)?, "{loaded} of {most}");
    let payer = &simulation["lamports"][0];
    let paid = number(&payer["before"])?.checked_sub(number(&payer["after"])?);
    ensure!(
        paid.is_none_or(|paid| paid >= receipt.fee),
        "{simulation} without the fee"
    );
    Ok(())
}

async fn send(bench: &Bench<'_>, answer: &Value, wallets: &Wallets) -> anyhow::Result<Confirmed> {
    let text = answer["transaction"].as_str().context("a transaction")?;
    let both = [&wallets.fee_payer, &wallets.user];
    let signers = if both[0].pubkey() == both[1].pubkey() {
        &both[..1]
    } else {
        &both[..]
    };
    let transaction = sign_encoded_by(text, signers)?;
    let receipt = bench.chain().send_and_confirm(&transaction, true).await?;
    ensure!(
        receipt.error.is_none(),
        "{:?}: {:#?}",
        receipt.error,
        receipt.logs
    );
    Ok(receipt)
}
