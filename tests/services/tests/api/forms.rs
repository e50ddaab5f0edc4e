//! Exact outputs, two hops, other receivers and other fee payers, from the quote to the transaction.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_harness::api::Lines;
use sluice_testkit::names::keypair;
use sluice_transaction::Associated;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use swap_guard_interface::{
    SWAP_EXACT_OUT_DISCRIMINATOR, SWAP_EXACT_OUT_TO_DISCRIMINATOR, SWAP_TWO_HOPS_DISCRIMINATOR,
};

use crate::client::{AMOUNT, Client, wallet};

fn receiver() -> Pubkey {
    keypair("receiver").pubkey()
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no amount"))
}

/// The data of the guard's instruction in a transaction.
fn guard_data(answer: &Value) -> Vec<u8> {
    let bytes = BASE64.decode(answer["transaction"].as_str().expect("a transaction"));
    let transaction: VersionedTransaction =
        wincode::deserialize_exact(&bytes.expect("base64")).expect("a transaction");
    let keys = transaction.message.static_account_keys();
    let is_guard = |index: u8| keys[usize::from(index)] == swap_guard_interface::PROGRAM_ID;
    let mut guarded = transaction.message.instructions().iter();
    let guarded = guarded.find(|instruction| is_guard(instruction.program_id_index));
    guarded.expect("the guard is called").data.clone()
}

impl Client {
    /// The answer to a quote of SOL for the SOL pool's token.
    async fn exact_out(&self) -> Value {
        let mints = self.harness.sol_pool.state.mints;
        let path = format!(
            "/v1/quote?inputMint={}&outputMint={}&amount={AMOUNT}&swapMode=ExactOut&slippageBps=100",
            mints.token_0, mints.token_1
        );
        let answer = self.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// The answer to a quote of SOL for a token that only two pools lead to.
    async fn two_hops(&self) -> Value {
        let input = self.harness.sol_pool.state.mints.token_0;
        let output = self.harness.far_pool.state.mints.token_1;
        let path = format!("/v1/quote?inputMint={input}&outputMint={output}&amount={AMOUNT}");
        assert_eq!(self.get(&path).await.code(), "no_pool");
        let answer = self.get(&format!("{path}&maxHops=2")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }
}

#[tokio::test]
async fn without_unwrap_lamports_sol_for_another_wallet_brings_the_rent_along() {
    for (settings, sol_output) in [
        ("unwrap-lamports = false", "unwrappedWithRent"),
        ("", "unwrapped"),
    ] {
        let client = Client::start_set(Lines {
            chain: settings,
            ..Lines::default()
        })
        .await;
        let mints = client.harness.sol_pool.state.mints;
        let (input, output) = (mints.token_1, mints.token_0);
        let path = format!("/v1/quote?inputMint={input}&outputMint={output}&amount={AMOUNT}");
        let quote = client.get(&path).await.body["quote"].clone();
        let mut body = client.body(&quote);
        body["receiver"] = json!(receiver().to_string());
        client.enrich(1_000_000_000);
        client.harness.node.set(RawAccount {
            pubkey: receiver(),
            owner: Pubkey::default(),
            lamports: 1_000_000_000,
            data: Bytes::new(),
        });
        let answer = client.transaction(&body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body["solOutput"], sol_output);
        let rents = answer.body["costs"]["rent"].as_array().expect("a list");
        let rent = rents.last().expect("the account that takes the SOL");
        let is_parted = settings.is_empty();
        let rent_to = if is_parted { wallet() } else { receiver() };
        assert_eq!(rent["rentTo"], json!(rent_to.to_string()));
        assert_eq!(rent["comesBack"], json!(is_parted));
    }
}

#[tokio::test]
async fn an_exact_output_is_quoted_with_its_maximum_and_enforced() {
    let client = Client::start().await;
    let answer = client.exact_out().await;
    let (quote, context) = (&answer["quote"], &answer["context"]);
    let expected = number(&context["expectedIn"]);
    assert_eq!(context["swapMode"], "ExactOut");
    assert_eq!(quote["outAmount"], json!(AMOUNT));
    assert_eq!(quote["minimumOut"], json!(AMOUNT));
    assert_eq!(number(&quote["amountIn"]), (expected * 101).div_ceil(100));
    // Exact-in with what it takes pays no less, and with one unit less pays less.
    let exact_in = async |amount: u64| {
        let mints = client.harness.sol_pool.state.mints;
        let path = format!(
            "/v1/quote?inputMint={}&outputMint={}&amount={amount}",
            mints.token_0, mints.token_1
        );
        number(&client.get(&path).await.body["quote"]["outAmount"])
    };
    assert!(exact_in(expected).await >= AMOUNT);
    assert!(exact_in(expected - 1).await < AMOUNT);

    let mut body = client.body(quote);
    body["swapMode"] = json!("ExactOut");
    let built = client.transaction(&body).await;
    assert_eq!(built.status, 200, "{}", built.body);
    assert_eq!(built.body["quote"], *quote);
    assert_eq!(number(&built.body["expectedIn"]), expected);
    let data = guard_data(&built.body);
    assert_eq!(data[..8], SWAP_EXACT_OUT_DISCRIMINATOR);
    assert_eq!(data[8..16], number(&quote["amountIn"]).to_le_bytes());
    assert_eq!(data[16..24], AMOUNT.to_le_bytes());
    assert_eq!(built.body["costs"]["wrappedLamports"], quote["amountIn"]);
    let units = &built.body["computeUnits"];
    assert_eq!(units["headroom"], json!(6_000));
    let limit = number(&units["learned"]) + 6_000;
    assert_eq!(built.body["computeUnitLimit"], json!(limit));

    // A dearer pool: the maximum is short, and a fresh quote has another.
    client.drain(20).await;
    let stale = client.transaction(&body).await;
    assert_eq!((stale.status.as_u16(), stale.code()), (409, "quote_stale"));
    let fresh = &stale.body["quote"];
    assert_eq!(fresh["outAmount"], json!(AMOUNT));
    assert!(number(&fresh["amountIn"]) > number(&quote["amountIn"]));
    body["refresh"] = json!(true);
    let unnamed = client.transaction(&body).await;
    assert_eq!(unnamed.code(), "missing_field", "the slippage is not known");
    body["quote"]["slippageBps"] = json!(100);
    let renewed = client.transaction(&body).await;
    assert_eq!(renewed.status, 200, "{}", renewed.body);
    let expected = number(&renewed.body["expectedIn"]);
    let most = number(&renewed.body["quote"]["amountIn"]);
    assert_eq!(most, (expected * 101).div_ceil(100));
}

#[tokio::test]
async fn without_a_pool_an_exact_output_is_for_the_best_one() {
    let client = Client::start().await;
    let quoted = client.exact_out().await;
    let quote = &quoted["quote"];
    let wish = json!({
        "inputMint": quote["inputMint"], "outputMint": quote["outputMint"],
        "outAmount": AMOUNT.to_string(), "slippageBps": 100,
    });
    let mut body = client.body(&wish);
    body["swapMode"] = json!("ExactOut");
    let answer = client.post("/v1/swap/instruction", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["quote"], *quote);
    assert_eq!(answer.body["expectedIn"], quoted["context"]["expectedIn"]);
    body["quote"]["outAmount"] = json!(u64::MAX / 2);
    let answer = client.post("/v1/swap/instruction", &body).await;
    let got = (answer.status.as_u16(), answer.code());
    assert_eq!(got, (422, "amount_too_large"), "{}", answer.body);
}

#[tokio::test]
async fn two_pools_are_quoted_and_swapped_as_one() {
    let client = Client::start().await;
    let answer = client.two_hops().await;
    let (quote, context) = (&answer["quote"], &answer["context"]);
    let pools = [&client.harness.sol_pool, &client.harness.far_pool];
    let joined = format!("{},{}", pools[0].address, pools[1].address);
    assert_eq!(quote["pool"], joined);
    let members = quote.as_object().expect("an object").len();
    assert_eq!(members, 7, "the contract");
    let hops = context["hops"].as_array().expect("a list");
    assert_eq!(hops[0]["outAmount"], hops[1]["amountIn"]);
    assert_eq!(hops[1]["outAmount"], quote["outAmount"]);
    // Named, it is the same route.
    let named = format!(
        "/v1/quote?inputMint={}&outputMint={}&amount={AMOUNT}&maxHops=2&pool={joined}",
        pools[0].state.mints.token_0, pools[1].state.mints.token_1
    );
    assert_eq!(client.get(&named).await.body["quote"], *quote);
    let backwards = named.replace(
        &joined,
        &format!("{},{}", pools[1].address, pools[0].address),
    );
    assert_eq!(client.get(&backwards).await.code(), "unknown_pool");

    let body = client.body(quote);
    let built = client.transaction(&body).await;
    assert_eq!(built.status, 200, "{}", built.body);
    assert_eq!(guard_data(&built.body)[..8], SWAP_TWO_HOPS_DISCRIMINATOR);
    let rent = built.body["costs"]["rent"].as_array().expect("a list");
    let back: Vec<_> = rent.iter().map(|one| one["comesBack"].clone()).collect();
    assert_eq!(back, [true, true, false], "SOL, middle, output");
    let bare = client.post("/v1/swap/instruction", &body).await;
    assert_eq!(bare.status, 200, "{}", bare.body);
    assert_eq!(bare.body["keys"].as_array().map(Vec::len), Some(22));
    let middle = pools[0].state.mints.token_1;
    let program = pools[0].state.token_programs.token_1;
    let account = Associated::of(&wallet(), &middle, &program).address;
    let listed = &bare.body["tokenAccounts"]["middle"];
    assert_eq!(listed["address"], account.to_string());

    // A middle account that is there is used and stays.
    client.give(account, wallet(), middle, 5, false);
    let built = client.transaction(&body).await;
    let rent = built.body["costs"]["rent"].as_array().map(Vec::len);
    assert_eq!(rent, Some(2), "{}", built.body);
    client.give(account, wallet(), middle, 5, true);
    let frozen = client.transaction(&body).await;
    assert_eq!(frozen.code(), "token_account_unusable");
}

#[tokio::test]
async fn another_wallet_receives_and_another_one_pays() {
    let client = Client::start().await;
    let quoted = client.exact_out().await;
    let mut body = client.body(&quoted["quote"]);
    body["swapMode"] = json!("ExactOut");
    body["receiver"] = json!(receiver().to_string());
    let payer = keypair("fee payer").pubkey();
    body["feePayer"] = json!(payer.to_string());
    body["checkBalance"] = json!(true);
    let poor = client.transaction(&body).await;
    assert_eq!(poor.code(), "insufficient_balance");
    let needed = number(&poor.body["needed"]);
    client.enrich(needed);
    let poor = client.transaction(&body).await;
    assert_eq!(poor.code(), "insufficient_balance", "the payer is empty");
    let needed_of_payer = number(&poor.body["needed"]);
    let rich = |lamports| RawAccount {
        pubkey: payer,
        owner: Pubkey::default(),
        lamports,
        data: Bytes::new(),
    };
    client.harness.node.set(rich(needed_of_payer - 1));
    assert_eq!(
        client.transaction(&body).await.code(),
        "insufficient_balance"
    );
    client.harness.node.set(rich(needed_of_payer));
    let built = client.transaction(&body).await;
    assert_eq!(built.status, 200, "{}", built.body);
    let costs = &built.body["costs"];
    assert_eq!(costs["feePayer"], payer.to_string());
    assert_eq!(costs["baseFeeLamports"], json!(10_000));
    assert_eq!(number(&costs["requiredLamports"]), needed_of_payer);
    assert_eq!(number(&costs["requiredOfUserLamports"]), needed);
    let owners = costs["rent"].as_array().expect("a list").iter();
    let owners: Vec<_> = owners.map(|rent| rent["owner"].clone()).collect();
    assert_eq!(owners, [wallet().to_string(), receiver().to_string()]);
    let data = guard_data(&built.body);
    assert_eq!(data[..8], SWAP_EXACT_OUT_TO_DISCRIMINATOR);
    assert_eq!(data[32..], receiver().to_bytes());
}

#[tokio::test]
async fn receivers_and_payers_that_cannot_be_are_refused() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    let with = |field: &str, value: Pubkey| {
        let mut body = body.clone();
        body[field] = json!(value.to_string());
        body
    };
    for field in ["receiver", "feePayer"] {
        let answer = client.transaction(&with(field, cpmm::ids::AUTHORITY)).await;
        assert_eq!(answer.code(), "wallet_off_curve", "{}", answer.body);
        assert_eq!(answer.body["field"], field);
        // The user's own wallet is what it is without the field.
        let own = client.transaction(&with(field, wallet())).await;
        let plain = client.transaction(&body).await;
        assert_eq!(own.body["costs"], plain.body["costs"]);
    }
    let mints = client.harness.sol_pool.state.mints;
    client.give(receiver(), wallet(), mints.token_1, 0, false);
    let answer = client.transaction(&with("receiver", receiver())).await;
    let got = (answer.status.as_u16(), answer.code());
    assert_eq!(got, (422, "receiver_unusable"), "{}", answer.body);
}

#[tokio::test]
async fn sol_for_another_wallet_must_exempt_it_from_rent() {
    let client = Client::start().await;
    let mints = client.harness.sol_pool.state.mints;
    let quote = async |amount: u64| {
        let path = format!(
            "/v1/quote?inputMint={}&outputMint={}&amount={amount}",
            mints.token_1, mints.token_0
        );
        client.get(&path).await.body["quote"].clone()
    };
    let asked = async |amount| {
        let mut body = client.body(&quote(amount).await);
        body["receiver"] = json!(receiver().to_string());
        client.transaction(&body).await
    };
    let little = asked(AMOUNT / 2).await;
    let got = (little.status.as_u16(), little.code());
    assert_eq!(got, (422, "receiver_unusable"), "{}", little.body);
    let enough = asked(AMOUNT).await;
    assert_eq!(enough.status, 200, "{}", enough.body);
    let steps = enough.body["instructions"]
        .as_array()
        .expect("a list")
        .iter();
    let unwrap = steps.clone().find(|step| step["name"] == "unwrapSol");
    let to = &unwrap.expect("it is unwrapped")["accounts"][1];
    assert_eq!(to["pubkey"], receiver().to_string());
    assert_eq!(to["role"], "solReceiver");
}
