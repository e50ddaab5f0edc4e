//! Prints the quote of a swap, then every quote that follows: `quote URL INPUT_MINT OUTPUT_MINT AMOUNT [HOW_MANY]`.

use std::{env, error::Error};

use sluice_client::{Client, wire::StreamQuotesQuery};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, input_mint, output_mint, amount, rest @ ..] = &arguments[..] else {
        return Err("usage: quote URL INPUT_MINT OUTPUT_MINT AMOUNT [HOW_MANY]".into());
    };
    let most: usize = rest.first().map_or(Ok(usize::MAX), |text| text.parse())?;
    let mut quotes = Client::new(url)?.follow_quotes(StreamQuotesQuery {
        input_mint: input_mint.clone(),
        output_mint: output_mint.clone(),
        amount: amount.parse()?,
        ..StreamQuotesQuery::default()
    });
    for _ in 0..most {
        let answer = quotes.next().await?;
        let quote = answer.quote;
        println!(
            "slot {}: {} for {}, at least {}",
            answer.context.slot, quote.out_amount, quote.amount_in, quote.minimum_out
        );
    }
    Ok(())
}
