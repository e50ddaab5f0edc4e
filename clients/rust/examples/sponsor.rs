//! Swaps for a user without SOL, at a sponsor's cost: `sponsor URL USER_WALLET SPONSOR_WALLET INPUT_MINT OUTPUT_MINT AMOUNT`.

use std::{env, error::Error};

use sluice_client::{
    Client,
    wire::{GetQuoteQuery, SwapRequest},
};
use solana_keypair::{Signer, read_keypair_file};

mod wallet;

const USAGE: &str = "usage: sponsor URL USER_WALLET SPONSOR_WALLET INPUT_MINT OUTPUT_MINT AMOUNT";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, user, sponsor, input_mint, output_mint, amount] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let sluice = Client::new(url)?;
    let (user, sponsor) = (read_keypair_file(user)?, read_keypair_file(sponsor)?);
    let query = GetQuoteQuery {
        input_mint: input_mint.clone(),
        output_mint: output_mint.clone(),
        amount: amount.parse()?,
        ..GetQuoteQuery::default()
    };
    let answer = sluice.get_quote(&query).await?;
    let quoted = answer.quote.out_amount;
    let request = SwapRequest {
        quote: answer.quote.into(),
        user_public_key: user.pubkey().to_string(),
        // Pays the fee and every rent, and signs with the user.
        fee_payer: Some(sponsor.pubkey().to_string()),
        expiry_slot: Some(answer.context.expiry_slot),
        ..SwapRequest::default()
    };
    let swapped = wallet::swap(&sluice, &request, &[&sponsor, &user]).await?;
    let (signature, received) = (swapped.signature, swapped.received);
    println!("{signature}: received {received}, quoted {quoted}");
    Ok(())
}
