//! The Rust client against the whole API: amounts to the last unit, a stream that follows the market, problems by their codes.

use sluice_client::{
    Client as Sluice,
    wire::{GetQuoteQuery, ProblemCode, StreamQuotesQuery, SwapRequest},
};

use crate::client::{AMOUNT, Client, wallet};

/// The client of the service under test.
fn sluice(client: &Client) -> Sluice {
    Sluice::new(&client.harness.url).expect("a URL")
}

fn mints(client: &Client) -> (String, String) {
    let mints = client.harness.sol_pool.state.mints;
    (mints.token_0.to_string(), mints.token_1.to_string())
}

#[tokio::test]
async fn a_quote_becomes_a_transaction_that_names_it() {
    let client = Client::start().await;
    let sluice = sluice(&client);
    let (input_mint, output_mint) = mints(&client);
    let query = GetQuoteQuery {
        input_mint,
        output_mint,
        amount: AMOUNT,
        slippage_bps: Some(50),
        ..GetQuoteQuery::default()
    };
    let answer = sluice.get_quote(&query).await.expect("a quote");
    assert_eq!(
        serde_json::to_value(&answer.quote).expect("JSON"),
        client.quote().await
    );
    let request = SwapRequest {
        quote: answer.quote.clone().into(),
        user_public_key: wallet().to_string(),
        ..SwapRequest::default()
    };
    let built = sluice.build_transaction(&request, Some("one-key")).await;
    let built = built.expect("a transaction");
    assert_eq!(built.quote.minimum_out, answer.quote.minimum_out);
    let again = sluice.build_transaction(&request, Some("one-key")).await;
    assert_eq!(again.expect("the same").transaction, built.transaction);
}

#[tokio::test]
async fn a_stream_of_quotes_follows_the_market() {
    let client = Client::start().await;
    let (input_mint, output_mint) = mints(&client);
    let mut quotes = sluice(&client).follow_quotes(StreamQuotesQuery {
        input_mint,
        output_mint,
        amount: AMOUNT,
        ..StreamQuotesQuery::default()
    });
    let mut last = quotes.next().await.expect("a quote");
    for percent in [10, 20] {
        client.drain(percent).await;
        let next = quotes.next().await.expect("another");
        assert!(next.context.slot > last.context.slot);
        assert!(next.quote.out_amount < last.quote.out_amount);
        last = next;
    }
}

#[tokio::test]
async fn a_refusal_has_its_code_and_is_not_repeated() {
    let client = Client::start().await;
    let refused = sluice(&client).get_pool(&wallet().to_string()).await;
    let error = refused.expect_err("a wallet is no pool");
    assert_eq!(error.code(), Some(&ProblemCode::NotFound), "{error}");
    assert!(!error.is_passing());
    let sluice_client::Error::Refused(refusal) = error else {
        panic!("{error}");
    };
    assert_eq!(refusal.attempts, 1);
    assert!(refusal.request_id.is_some());
}
