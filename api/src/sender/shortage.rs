//! Shortage: a swap that was sent here and ran out of compute units teaches what such swaps need.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use cpmm::Amount;
use sluice_market::{Market, QuoteCommitment};
use sluice_transaction::{
    compute_units::short_call,
    explanation::{Explanation, LookedUp, NamedSwap},
};
use swap_guard_interface::SwapAmounts;

use crate::{
    calibrator::Calibrator,
    extract::Pools,
    pricing::{Ask, SwapMode, best_route},
    rpc::Rpc,
};

/// What learns from such swaps, and what it needs for that.
pub struct Shortage {
    /// Knows the pools.
    pub market: Market,
    /// Knows the exchange's program, and the lookup table in which a transaction may name them.
    pub rpc: Arc<Rpc>,
    /// Learns.
    pub calibrator: Arc<Calibrator>,
}

impl Shortage {
    /// Takes in the logs of a transaction that failed, and its wire bytes, base64. Nothing is learned where it did not run short, or
    /// where its pools are not known any more.
    pub(super) fn learn(&self, transaction: &str, logs: &[String]) {
        let exchange = self.rpc.exchange().program;
        let Some(short) = short_call(logs, &exchange) else {
            return;
        };
        let table = self.rpc.lookup_table();
        let bytes = BASE64_STANDARD.decode(transaction).unwrap_or_default();
        let explained = Explanation::read(&bytes, LookedUp::In(table.as_deref()), &exchange);
        let steps = explained
            .map(|explained| explained.steps)
            .unwrap_or_default();
        let asked = steps.iter().find_map(NamedSwap::of).and_then(ask);
        let route = asked.and_then(|ask| best_route(&self.market, &ask).ok());
        if let Some(hop) = route
            .as_ref()
            .and_then(|route| route.hops().nth(short.before))
        {
            self.calibrator.ran_short(hop, short.units);
        }
    }
}

/// What is asked of the market for a swap as it was sent.
fn ask(swap: NamedSwap) -> Option<Ask> {
    let pools = match *swap.pools {
        [pool] => Pools::One(pool),
        [first, second] => Pools::Two(first, second),
        _ => return None,
    };
    let (mode, amount) = match swap.amounts {
        SwapAmounts::ExactIn(args) => (SwapMode::ExactIn, args.amount_in),
        SwapAmounts::ExactOut(args) => (SwapMode::ExactOut, args.amount_out),
    };
    Some(Ask {
        input_mint: swap.input_mint,
        output_mint: swap.output_mint,
        amount: Amount::new(amount),
        // What the guard swaps is what the platform's fee has left.
        platform_rate: None,
        mode,
        pools: Some(pools),
        two_hops: false,
        before_opening: false,
        max_price_impact: None,
        commitment: QuoteCommitment::Confirmed,
    })
}
