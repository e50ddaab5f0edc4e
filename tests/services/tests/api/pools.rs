//! Pools and mints as data: by mint, page by page, alone, and as they are after they moved.

use std::time::Duration;

use cpmm::ids;
use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_testkit::names::address;

use crate::client::Client;

impl Client {
    async fn data(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }
}

fn addresses(page: &Value) -> Vec<String> {
    let pools = page["pools"].as_array().expect("a list").iter();
    pools
        .map(|pool| pool["pool"].as_str().expect("an address").to_owned())
        .collect()
}

#[tokio::test]
async fn pools_are_listed_by_mint_and_page_by_page() {
    let client = Client::start().await;
    let harness = &client.harness;
    let mut all: Vec<_> = [&harness.sol_pool, &harness.fee_pool, &harness.far_pool]
        .map(|pool| pool.address)
        .into();
    all.sort();
    let all: Vec<_> = all.iter().map(ToString::to_string).collect();
    let page = client.data("/v1/pools").await;
    assert_eq!(addresses(&page), all);
    assert_eq!(page["cursor"], Value::Null);
    let first = client.data("/v1/pools?limit=2").await;
    assert_eq!(addresses(&first), all[..2]);
    let cursor = first["cursor"].as_str().expect("there is more");
    let second = client
        .data(&format!("/v1/pools?limit=2&cursor={cursor}"))
        .await;
    assert_eq!(addresses(&second), all[2..]);
    assert_eq!(second["cursor"], Value::Null);
    // The second token of the one pool is the first of the other.
    let shared = harness.sol_pool.state.mints.token_1;
    let both = addresses(&client.data(&format!("/v1/pools?mint={shared}")).await);
    let sol = harness.sol_pool.state.mints.token_0;
    let one = addresses(&client.data(&format!("/v1/pools?mint={sol}")).await);
    assert_eq!((both.len(), one.len()), (2, 1));
    assert_eq!(one[0], harness.sol_pool.address.to_string());
    let none = client
        .data(&format!("/v1/pools?mint={}", address("none")))
        .await;
    assert!(addresses(&none).is_empty());
}

#[tokio::test]
async fn a_pool_is_shown_as_it_is_now() {
    let client = Client::start().await;
    let pool = &client.harness.sol_pool;
    let path = format!("/v1/pools/{}", pool.address);
    let before = client.data(&path).await;
    let shown = &before["pool"];
    let tokens = &shown["tokens"];
    assert_eq!(
        tokens[0]["mint"],
        json!(pool.state.mints.token_0.to_string())
    );
    assert_eq!(
        tokens[1]["vault"],
        json!(pool.state.vaults.token_1.to_string())
    );
    let reserve = tokens[0]["reserve"].as_u64().expect("a reserve");
    assert_eq!(tokens[0]["reserveString"], json!(reserve.to_string()));
    assert_eq!(
        (&shown["isTradable"], &shown["reason"]),
        (&json!(true), &Value::Null)
    );
    assert!(before["slot"].as_u64() > Some(1_000));
    client.drain(50).await;
    let after = client.data(&path).await;
    let (was, is) = (
        &before["pool"]["tokens"][1]["reserve"],
        &after["pool"]["tokens"][1]["reserve"],
    );
    assert!(is.as_u64() < was.as_u64(), "{was} {is}");
    let price = |body: &Value| body["pool"]["price"].as_str().map(str::parse::<f64>);
    let (was, is) = (price(&before), price(&after));
    let ratio = is.and_then(Result::ok).zip(was.and_then(Result::ok));
    let (is, was) = ratio.expect("prices");
    assert!(is < was * 0.51, "{was} {is}");
}

#[tokio::test]
async fn a_swap_is_built_before_its_pool_opens() {
    /// In the year 2100, seconds.
    const LATER: u64 = 4_102_444_800;

    let client = Client::start().await;
    let pool = &client.harness.sol_pool;
    let quote = client.quote().await;
    let mut state = pool.state.clone();
    state.open_time = LATER;
    client.harness.chain.write(RawAccount {
        pubkey: pool.address,
        owner: ids::PROGRAM_ID,
        lamports: 10_000_000,
        data: state.encode().into(),
    });
    let path = format!("/v1/pools/{}", pool.address);
    while client.data(&path).await["pool"]["openTime"] != json!(state.open_time) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.data(&path).await["pool"]["isTradable"], json!(false));
    let mut body = client.body(&quote);
    for path in ["/v1/swap/transaction", "/v1/swap/instruction"] {
        let built = client.post(path, &body).await;
        assert_eq!(built.status, 200, "{}", built.body);
        assert_eq!(built.body["openTime"], json!(state.open_time));
        assert_eq!(built.body["quote"], quote);
    }
    // Without its name it is none that could be swapped in.
    let fields = body["quote"].as_object_mut().expect("a quote");
    fields.remove("pool");
    let refused = client.transaction(&body).await;
    let got = (refused.status.as_u16(), refused.code());
    assert_eq!(got, (409, "pool_not_open"), "{}", refused.body);
}

#[tokio::test]
async fn a_pool_is_shown_with_its_status_and_its_mints_with_their_extensions() {
    /// Bits of deposits and swaps.
    const NO_DEPOSIT_AND_NO_SWAP: u8 = 0b101;

    let client = Client::start().await;
    let pool = &client.harness.fee_pool;
    let path = format!("/v1/pools/{}", pool.address);
    let before = client.data(&path).await;
    assert_eq!(before["pool"]["status"], json!(0));
    let tokens = &before["pool"]["tokens"];
    assert_eq!(tokens[0]["extensions"], json!([]));
    assert_eq!(tokens[1]["extensions"], json!(["TransferFeeConfig"]));
    let mut state = pool.state.clone();
    state.status = NO_DEPOSIT_AND_NO_SWAP;
    client.harness.chain.write(RawAccount {
        pubkey: pool.address,
        owner: ids::PROGRAM_ID,
        lamports: 10_000_000,
        data: state.encode().into(),
    });
    let after = loop {
        let shown = client.data(&path).await;
        if shown["pool"]["status"] != json!(0) {
            break shown;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(after["pool"]["status"], json!(NO_DEPOSIT_AND_NO_SWAP));
    assert_eq!(after["pool"]["isTradable"], json!(false));
}

#[tokio::test]
async fn a_mint_is_shown_with_what_it_withholds() {
    let client = Client::start().await;
    let mints = client.harness.fee_pool.state.mints;
    let [plain, taxed] = [mints.token_0, mints.token_1];
    let with_fee = client.data(&format!("/v1/mints/{taxed}")).await;
    let without = client.data(&format!("/v1/mints/{plain}")).await;
    assert_eq!(with_fee["transferFee"]["basisPoints"], json!(100));
    assert_eq!(with_fee["extensions"], json!(["TransferFeeConfig"]));
    assert_eq!(without["extensions"], json!([]));
    assert_eq!(without["transferFee"], Value::Null);
    assert_eq!(without["pools"], json!(1));
    let supply = with_fee["supply"].as_u64().expect("an amount");
    assert_eq!(with_fee["supplyString"], json!(supply.to_string()));
    let shared = client.harness.sol_pool.state.mints.token_1;
    assert_eq!(
        client.data(&format!("/v1/mints/{shared}")).await["pools"],
        json!(2)
    );
}

#[tokio::test]
async fn what_is_not_there_is_refused_by_its_code() {
    let client = Client::start().await;
    let stranger = address("stranger");
    for (path, status, code) in [
        (format!("/v1/pools/{stranger}"), 404, "not_found"),
        (format!("/v1/mints/{stranger}"), 404, "not_found"),
        ("/v1/pools/me".to_owned(), 400, "invalid_field"),
        ("/v1/mints/me".to_owned(), 400, "invalid_field"),
        ("/v1/pools?limit=101".to_owned(), 400, "invalid_field"),
        ("/v1/pools?mints=1".to_owned(), 400, "unknown_field"),
        (format!("/v1/pools/{stranger}?x=1"), 400, "unknown_field"),
    ] {
        let answer = client.get(&path).await;
        let got = (answer.status.as_u16(), answer.code());
        assert_eq!(got, (status, code), "{path}: {}", answer.body);
    }
}
