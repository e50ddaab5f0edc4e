//! Swaps as soon as the market pays enough, and not before: `bot URL WALLET INPUT_MINT OUTPUT_MINT AMOUNT AT_LEAST`.

use std::{env, error::Error};

use sluice_client::{
    Client,
    wire::{StreamQuotesQuery, SwapRequest},
};
use solana_keypair::{Signer, read_keypair_file};

mod wallet;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, file, input_mint, output_mint, amount, at_least] = &arguments[..] else {
        return Err("usage: bot URL WALLET INPUT_MINT OUTPUT_MINT AMOUNT AT_LEAST".into());
    };
    let (sluice, wallet) = (Client::new(url)?, read_keypair_file(file)?);
    let at_least: u64 = at_least.parse()?;
    let mut quotes = sluice.follow_quotes(StreamQuotesQuery {
        input_mint: input_mint.clone(),
        output_mint: output_mint.clone(),
        amount: amount.parse()?,
        slippage_bps: Some(50),
        ..StreamQuotesQuery::default()
    });
    let answer = loop {
        let answer = quotes.next().await?;
        let (slot, pays) = (answer.context.slot, answer.quote.out_amount);
        println!("slot {slot}: the market pays {pays}");
        if pays >= at_least {
            break answer;
        }
    };
    let quoted = answer.quote.out_amount;
    let mut request = SwapRequest {
        quote: answer.quote.into(),
        user_public_key: wallet.pubkey().to_string(),
        expiry_slot: Some(answer.context.expiry_slot),
        ..SwapRequest::default()
    };
    // Nothing below what was waited for is accepted, however far the price may slip before the swap is executed.
    request.quote.minimum_out = request.quote.minimum_out.max(Some(at_least));
    let swapped = wallet::swap(&sluice, &request, &[&wallet]).await?;
    let (signature, received) = (swapped.signature, swapped.received);
    println!("{signature}: received {received}, quoted {quoted}");
    Ok(())
}
