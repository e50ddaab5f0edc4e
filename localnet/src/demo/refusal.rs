//! Refused swap: asks for more than the pool pays, is sent all the same, must fail on the chain.

use anyhow::{Context, bail, ensure};
use solana_signer::Signer;
use solana_transaction_error::TransactionError;
use swap_guard_interface::{GuardError, SWAP_DISCRIMINATOR};

use crate::net::Localnet;

use super::{
    swap::{self, Leg},
    transcript::Transcript,
};

/// Where `minimum_out` stands in the guard's instruction data.
const MINIMUM_OUT: std::ops::Range<usize> = 16..24;

/// Takes the honest instruction from the API, raises its minimum one unit above what the pool pays,
/// and sends it without a preflight, which would refuse it before it reached the chain.
pub async fn run(transcript: &mut Transcript, net: &Localnet, leg: &Leg) -> anyhow::Result<()> {
    let scene = &net.scene;
    let wallet = scene.wallet.pubkey();
    let quote = net.sluice().quote(&leg.request()).await?.quote;
    let mut instruction = net.sluice().swap_instruction(&quote, &wallet).await?;
    ensure!(
        instruction.program_id == swap_guard_interface::PROGRAM_ID
            && instruction.data.starts_with(&SWAP_DISCRIMINATOR),
        "the API's instruction is not the guard's swap"
    );
    let minimum = quote.out_amount + 1;
    instruction
        .data
        .get_mut(MINIMUM_OUT)
        .context("the instruction's data is too short")?
        .copy_from_slice(&minimum.to_le_bytes());
    transcript.step(
        "minimum raised",
        &format!(
            "{}; the pool pays {}; sent without preflight",
            leg.to.show(minimum),
            leg.to.show(quote.out_amount)
        ),
    );
    let chain = net.chain();
    let accounts = [leg.from.account_of(&wallet), leg.to.account_of(&wallet)];
    let balances = async || -> anyhow::Result<[u64; 3]> {
        Ok([
            chain.lamports(&wallet).await?,
            chain.tokens(&accounts[0]).await?,
            chain.tokens(&accounts[1]).await?,
        ])
    };
    let before = balances().await?;
    let transaction = chain.sign(&[instruction], &scene.wallet).await?;
    let confirmed = chain.send_and_confirm(&transaction, false).await?;
    swap::report(transcript, &confirmed);
    let Some(error) = &confirmed.error else {
        bail!("a swap above what the pool pays went through");
    };
    let refusal = explain(error, confirmed.failing_program())?;
    transcript.step("refused", &refusal);
    let [lamports, input, output] = balances().await?;
    ensure!(
        [lamports + confirmed.fee, input, output] == before,
        "balances moved although the swap was refused: {before:?} before, then \
         {lamports} lamports, {input} and {output} tokens"
    );
    transcript.step(
        "balances",
        &format!(
            "unmoved but for the fee: {}, {}",
            leg.from.show(input),
            leg.to.show(output)
        ),
    );
    Ok(())
}

/// Says which program refused and why; anything but a refusal for the minimum is an error. The guard's
/// instruction is the transaction's only one, so its index is 0 whichever program raised the code.
fn explain(error: &TransactionError, failing_program: Option<&str>) -> anyhow::Result<String> {
    let code = match error {
        TransactionError::InstructionError(
            0,
            solana_instruction::error::InstructionError::Custom(code),
        ) => *code,
        other => bail!("it failed for another reason than its minimum: {other}"),
    };
    let guard = swap_guard_interface::PROGRAM_ID.to_string();
    match failing_program {
        Some(program) if program == guard && code == GuardError::SlippageExceeded.code() => {
            Ok(format!(
                "by the guard {guard} with {code} SlippageExceeded, measured after the exchange paid"
            ))
        }
        program => bail!("it failed with {code} in {program:?}, which is no refusal of a minimum"),
    }
}

#[cfg(test)]
mod tests {
    use solana_instruction::error::InstructionError;

    use super::*;

    fn custom(index: u8, code: u32) -> TransactionError {
        TransactionError::InstructionError(index, InstructionError::Custom(code))
    }

    #[test]
    fn the_same_code_means_a_minimum_only_from_the_right_program() {
        let guard = swap_guard_interface::PROGRAM_ID.to_string();
        let exchange = cpmm::ids::PROGRAM_ID.to_string();
        assert!(explain(&custom(0, 6000), Some(&guard)).is_ok());
        // 6000 of the exchange is a closed pool, 6005 of the guard a zero amount.
        assert!(explain(&custom(0, 6000), Some(&exchange)).is_err());
        assert!(explain(&custom(0, 6005), Some(&guard)).is_err());
        assert!(explain(&custom(1, 6000), Some(&guard)).is_err());
        assert!(explain(&TransactionError::AccountNotFound, None).is_err());
    }
}
