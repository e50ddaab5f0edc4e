//! The service's lookup table: used while it is whole, and not before or after.

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_harness::api::Lines;
use sluice_transaction::{ExchangeIds, lookup_table::fixed_addresses};
use solana_address_lookup_table_interface::{
    program,
    state::{AddressLookupTable, LookupTableMeta},
};
use solana_pubkey::Pubkey;

use crate::client::Client;

const TABLE: Pubkey = Pubkey::new_from_array([77; 32]);

/// Longer than the API takes to read its table again.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// Gives the node the table with these addresses, closing since a slot or not.
    fn place_table(&self, addresses: &[Pubkey], deactivation_slot: u64) {
        let table = AddressLookupTable {
            meta: LookupTableMeta {
                deactivation_slot,
                ..LookupTableMeta::default()
            },
            addresses: Cow::Borrowed(addresses),
        };
        self.harness.node.set(RawAccount {
            pubkey: TABLE,
            owner: program::ID,
            lamports: 1,
            data: table.serialize_for_tests().expect("bytes").into(),
        });
    }

    /// Asks for this transaction until it is refused, or is not, and returns the answer.
    async fn until_status(&self, body: &Value, status: u16) -> Value {
        let begun = Instant::now();
        loop {
            let answer = self.transaction(body).await;
            if answer.status.as_u16() == status {
                return answer.body;
            }
            assert!(begun.elapsed() < PATIENCE, "{}", answer.body);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test]
async fn the_largest_swap_fits_while_the_table_is_whole() {
    let client = Client::start_set(Lines {
        chain: &format!("lookup-table = \"{TABLE}\""),
        ..Lines::default()
    })
    .await;
    let mut body = client.largest().await;
    let refused = client.until_status(&body, 422).await;
    let remedies = refused["remedies"].as_array().expect("a list");
    assert!(remedies.contains(&json!("chain.lookup-table")), "{refused}");
    let text = refused["detail"].as_str().expect("a detail");
    assert!(text.contains("chain.lookup-table"), "{refused}");

    let fixed = fixed_addresses(&ExchangeIds::MAINNET);
    client.place_table(&fixed, u64::MAX);
    let answer = client.until_status(&body, 200).await;
    assert_eq!(answer["lookupTable"], json!(TABLE.to_string()));
    body["transactionVersion"] = json!("legacy");
    let refused = client.until_status(&body, 422).await;
    let text = refused["detail"].as_str().expect("a detail");
    assert!(text.contains("ask for transactionVersion 0"), "{refused}");
    body["transactionVersion"] = json!(0);

    client.place_table(&fixed, 5);
    client.until_status(&body, 422).await;
    client.place_table(&fixed[1..], u64::MAX);
    let small = client.body(&client.quote().await);
    let answer = client.until_status(&small, 200).await;
    assert_eq!(answer["lookupTable"], Value::Null);
}
