//! Swaps what a wallet owns: `swap URL WALLET INPUT_MINT OUTPUT_MINT AMOUNT [RECEIVER]`.

use std::{env, error::Error};

use sluice_client::{
    Client,
    wire::{GetQuoteQuery, SwapRequest},
};
use solana_keypair::{Signer, read_keypair_file};

mod wallet;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, file, input_mint, output_mint, amount, rest @ ..] = &arguments[..] else {
        return Err("usage: swap URL WALLET INPUT_MINT OUTPUT_MINT AMOUNT [RECEIVER]".into());
    };
    let (sluice, wallet) = (Client::new(url)?, read_keypair_file(file)?);
    let query = GetQuoteQuery {
        input_mint: input_mint.clone(),
        output_mint: output_mint.clone(),
        amount: amount.parse()?,
        slippage_bps: Some(50),
        ..GetQuoteQuery::default()
    };
    let answer = sluice.get_quote(&query).await?;
    let quoted = answer.quote.out_amount;
    let request = SwapRequest {
        quote: answer.quote.into(),
        user_public_key: wallet.pubkey().to_string(),
        receiver: rest.first().cloned(),
        expiry_slot: Some(answer.context.expiry_slot),
        ..SwapRequest::default()
    };
    let swapped = wallet::swap(&sluice, &request, &[&wallet]).await?;
    let (signature, received) = (swapped.signature, swapped.received);
    println!("{signature}: received {received}, quoted {quoted}");
    Ok(())
}
