//! Simulated transaction: what the node found that it uses and moves, or the error with which it fails.

use serde::Serialize;
use sluice_transaction::{Failure, UnsignedTransaction};
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use super::request::Swap;
use crate::{
    error::{ApiError, SwapRefusal},
    extract::{Address, Digits},
    rpc::{Balances, Rpc, Simulation, TokenBalance},
};

/// Lines of the logs in an answer: a swap through two pools writes some seventy.
const MOST_LINES: usize = 100;

/// What the transaction used and moved when the node executed it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Simulation)]
pub(super) struct SimulationView {
    /// The slot of the state in which it was executed.
    slot: u64,
    /// Compute units that it used: `computeUnits` says what it may use in any state.
    compute_units: u64,
    compute_units_string: Digits,
    /// Bytes of accounts that it loaded; null where the node does not say.
    #[schema(required)]
    loaded_accounts_data_size: Option<u32>,
    /// Lamports of the wallets of the swap, fees and rents included; null where the node does not say.
    #[schema(required)]
    lamports: Option<Vec<LamportsView>>,
    /// Token accounts of these wallets whose balance changes, those that are created or closed too; null where the node does not
    /// say.
    #[schema(required)]
    tokens: Option<Vec<TokensView>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SimulatedLamports)]
struct LamportsView {
    wallet: Address,
    before: u64,
    before_string: Digits,
    after: u64,
    after_string: Digits,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SimulatedTokens)]
struct TokensView {
    account: Address,
    mint: Address,
    owner: Address,
    before: u64,
    before_string: Digits,
    after: u64,
    after_string: Digits,
}

/// Has the node execute the transaction in a state of `least_slot` or later.
///
/// # Errors
/// [`SwapRefusal::SimulationFailed`] when it fails; [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
pub(super) async fn simulated(
    rpc: &Rpc,
    swap: &Swap,
    unsigned: &UnsignedTransaction,
    least_slot: u64,
) -> Result<SimulationView, ApiError> {
    let simulation = rpc.simulate(&unsigned.bytes, least_slot).await?;
    if let Some(error) = &simulation.error {
        let exchange = &rpc.exchange().program;
        return Err(failed(error, &simulation, unsigned, exchange).into());
    }
    let wallets = wallets(swap);
    let addresses = unsigned.addresses();
    let balances = simulation.balances.as_ref();
    Ok(SimulationView {
        slot: simulation.slot,
        compute_units: simulation.units,
        compute_units_string: Digits(simulation.units),
        loaded_accounts_data_size: simulation.loaded_bytes,
        lamports: balances.map(|balances| lamports(balances, &addresses, &wallets)),
        tokens: balances.map(|balances| tokens(balances, &addresses, &wallets)),
    })
}

fn failed(
    error: &str,
    simulation: &Simulation,
    unsigned: &UnsignedTransaction,
    exchange: &Pubkey,
) -> SwapRefusal {
    let instruction = simulation.instruction.and_then(|index| {
        let planned = unsigned.instructions.get(index)?;
        Some((index, planned.name))
    });
    SwapRefusal::SimulationFailed {
        failure: Box::new(Failure::of(error, &simulation.logs, exchange)),
        instruction,
        logs: simulation.logs.iter().take(MOST_LINES).cloned().collect(),
    }
}

/// The wallets that have a part in the swap, each once.
fn wallets(swap: &Swap) -> Vec<Pubkey> {
    let platform = swap.platform.map(|platform| platform.wallet);
    let all = [Some(swap.user), swap.fee_payer, swap.receiver, platform];
    let mut wallets = Vec::new();
    for wallet in all.into_iter().flatten() {
        if !wallets.contains(&wallet) {
            wallets.push(wallet);
        }
    }
    wallets
}

fn lamports(balances: &Balances, addresses: &[Pubkey], wallets: &[Pubkey]) -> Vec<LamportsView> {
    let of_accounts = addresses.iter().zip(&balances.lamports);
    let of_wallets = of_accounts.filter(|(address, _)| wallets.contains(address));
    of_wallets
        .map(|(wallet, &(before, after))| LamportsView {
            wallet: Address::new(wallet),
            before,
            before_string: Digits(before),
            after,
            after_string: Digits(after),
        })
        .collect()
}

/// What these wallets' token accounts hold before and after. An account that is on one side alone is created or closed.
fn tokens(balances: &Balances, addresses: &[Pubkey], wallets: &[Pubkey]) -> Vec<TokensView> {
    let (before, after) = (&balances.tokens_before, &balances.tokens_after);
    let created = after
        .iter()
        .filter(|token| find(before, token.account_index).is_none());
    let mut changed = Vec::new();
    for token in before.iter().chain(created) {
        let address = addresses.get(token.account_index);
        let (Some(address), Ok(owner), Ok(mint)) =
            (address, token.owner.parse(), token.mint.parse())
        else {
            continue;
        };
        let of =
            |side: &[TokenBalance]| find(side, token.account_index).map_or(0, TokenBalance::amount);
        let (before, after) = (of(before), of(after));
        if before == after || !wallets.contains(&owner) {
            continue;
        }
        changed.push(TokensView {
            account: Address::new(address),
            mint: Address::new(&mint),
            owner: Address::new(&owner),
            before,
            before_string: Digits(before),
            after,
            after_string: Digits(after),
        });
    }
    changed
}

fn find(side: &[TokenBalance], account_index: usize) -> Option<&TokenBalance> {
    side.iter()
        .find(|token| token.account_index == account_index)
}
