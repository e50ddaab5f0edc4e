//! Another cluster: the exchange is where the configuration says, and mainnet's is a program like any other.

use base64::{Engine, prelude::BASE64_STANDARD};
use cpmm::{ExchangeIds, ids};
use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_harness::api::Lines;
use sluice_testkit::{
    pool::{Ledger, Pool, PoolSpec, TokenSpec},
    running_chain::RunningChain,
};
use solana_pubkey::Pubkey;
use solana_transaction::versioned::VersionedTransaction;

use crate::client::{AMOUNT, Client};

const DEVNET: ExchangeIds = ExchangeIds::DEVNET;

/// Balance of each vault, smallest units.
const RESERVE: u64 = 1_000_000_000_000;

/// Writes accounts of the exchange as devnet's, in the next slots of a running chain.
struct OnDevnet<'a>(&'a RunningChain);

impl Ledger for OnDevnet<'_> {
    fn place(&mut self, address: Pubkey, owner: Pubkey, mut data: Vec<u8>) {
        let owner = if owner == ids::PROGRAM_ID {
            DEVNET.program
        } else {
            owner
        };
        // A token account names its owner behind its mint.
        if let Some(owner) = data.get_mut(32..64)
            && *owner == ids::AUTHORITY.to_bytes()
        {
            owner.copy_from_slice(DEVNET.authority.as_ref());
        }
        self.0.write(RawAccount {
            pubkey: address,
            owner,
            lamports: 10_000_000,
            data: data.into(),
        });
    }
}

/// The API on devnet, with a pool there.
async fn on_devnet() -> (Client, Pool) {
    let client = Client::start_set(Lines {
        chain: &format!("exchange-program = \"{}\"", DEVNET.program),
        ..Lines::default()
    })
    .await;
    let pool = PoolSpec::of(TokenSpec::spl(RESERVE), TokenSpec::spl(RESERVE))
        .open(&mut OnDevnet(&client.harness.chain), "devnet pool");
    let path = format!("/v1/pools/{}", pool.address);
    while client.get(&path).await.status != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    (client, pool)
}

#[tokio::test]
async fn pools_of_the_configured_exchange_are_quoted_and_those_of_mainnets_are_not() {
    let (client, pool) = on_devnet().await;
    let quoted = |pool: &Pool| {
        let mints = pool.state.mints;
        format!(
            "/v1/quote?inputMint={}&outputMint={}&amount={AMOUNT}",
            mints.token_0, mints.token_1
        )
    };
    let answer = client.get(&quoted(&pool)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let quote = &answer.body["quote"];
    assert_eq!(quote["pool"], json!(pool.address.to_string()));
    assert_eq!(quote["program"], json!(DEVNET.program.to_string()));
    let mainnets = client.get(&quoted(&client.harness.sol_pool)).await;
    assert_eq!(mainnets.status, 404, "{}", mainnets.body);

    let mut body = client.body(quote);
    body["quote"]["program"] = json!(ids::PROGRAM_ID.to_string());
    let refused = client.transaction(&body).await;
    assert_eq!(refused.code(), "wrong_program", "{}", refused.body);
    let detail = refused.body["detail"].as_str().expect("a detail");
    assert!(detail.contains(&DEVNET.program.to_string()), "{detail}");
}

#[tokio::test]
async fn swaps_name_the_exchange_and_the_authority_of_the_cluster() {
    let (client, pool) = on_devnet().await;
    let mints = pool.state.mints;
    let path = format!(
        "/v1/quote?inputMint={}&outputMint={}&amount={AMOUNT}",
        mints.token_0, mints.token_1
    );
    let quote = client.get(&path).await.body["quote"].clone();
    let body = client.body(&quote);
    let bare = client.post("/v1/swap/instruction", &body).await;
    assert_eq!(bare.status, 200, "{}", bare.body);
    let keys = bare.body["keys"].as_array().expect("accounts");
    let named: Vec<&Value> = keys.iter().map(|key| &key["pubkey"]).collect();
    assert_eq!(*named[1], json!(DEVNET.program.to_string()));
    assert_eq!(*named[2], json!(DEVNET.authority.to_string()));

    let built = client.transaction(&body).await;
    assert_eq!(built.status, 200, "{}", built.body);
    let text = built.body["transaction"].as_str().expect("a transaction");
    let bytes = BASE64_STANDARD.decode(text).expect("base64");
    let transaction: VersionedTransaction = wincode::deserialize(&bytes).expect("a transaction");
    let keys = transaction.message.static_account_keys();
    for key in [DEVNET.program, DEVNET.authority] {
        assert!(keys.contains(&key), "{key} is not in {keys:?}");
    }
    for key in [ids::PROGRAM_ID, ids::AUTHORITY] {
        assert!(!keys.contains(&key), "{key} is in {keys:?}");
    }
}
