//! Routes of two pools: the one that was named, or the best through any middle.

use sluice_market::View;
use solana_pubkey::Pubkey;

use super::{Alternative, Ask, Priced, PricedHop, SwapMode, Unpriced, direction, known, why_none};
use crate::{error::ApiError, extract::Pools};

/// The route through the two pools that the caller named. The middle is the mint that both trade.
pub(super) fn named(view: &View, ask: &Ask, pools: [Pubkey; 2]) -> Result<Priced, Unpriced> {
    let [first, second] = pools;
    let mismatch = || Unpriced::MintMismatch {
        pools: Pools::Two(first, second),
    };
    let views = [known(view, ask, first)?, known(view, ask, second)?];
    let mints = &views[0].snapshot.pool.mints;
    let middle = [mints.token_0, mints.token_1]
        .into_iter()
        .find(|mint| *mint != ask.input_mint)
        .ok_or_else(mismatch)?;
    let [first_view, second_view] = views;
    let first_way =
        direction(&first_view.snapshot, &ask.input_mint, &middle).ok_or_else(mismatch)?;
    let second_way =
        direction(&second_view.snapshot, &middle, &ask.output_mint).ok_or_else(mismatch)?;
    let refused = |(pool, refusal)| {
        let alternative = Alternative {
            pools: Pools::One(pool),
            outcome: Err(refusal),
        };
        Unpriced::Refused(why_none(ask, &[alternative]))
    };
    let first =
        PricedHop::quote(first_view, first_way, SwapMode::ExactIn, ask.amount).map_err(refused)?;
    let delivered = first.quote.received();
    let second =
        PricedHop::quote(second_view, second_way, SwapMode::ExactIn, delivered).map_err(refused)?;
    Ok(Priced {
        exchange: view.exchange(),
        asked: ask.amount,
        platform_rate: ask.platform_rate,
        first,
        second: Some(second),
        alternatives: Vec::new(),
    })
}

/// The better of the best pool and the best route of two. The one that was not chosen is an alternative.
pub(super) fn best_with(
    view: &View,
    ask: &Ask,
    direct: Result<Priced, ApiError>,
) -> Result<Priced, ApiError> {
    let Some([first, second]) = best(view, ask) else {
        return direct;
    };
    let alternative = |received, pools| Alternative {
        pools,
        outcome: Ok(received),
    };
    match direct {
        Ok(mut direct) if direct.received() >= second.quote.received() => {
            let pools = Pools::Two(first.view.address, second.view.address);
            direct
                .alternatives
                .push(alternative(second.quote.received(), pools));
            Ok(direct)
        }
        Ok(direct) => {
            let mut alternatives = vec![alternative(direct.received(), direct.pools())];
            alternatives.extend(direct.alternatives);
            Ok(Priced {
                exchange: view.exchange(),
                asked: ask.amount,
                platform_rate: ask.platform_rate,
                first,
                second: Some(second),
                alternatives,
            })
        }
        Err(_) => Ok(Priced {
            exchange: view.exchange(),
            asked: ask.amount,
            platform_rate: ask.platform_rate,
            first,
            second: Some(second),
            alternatives: Vec::new(),
        }),
    }
}

/// The route of two that pays most. Of each middle the first pool is the one that delivers most of it: a second pool that
/// is offered more pays no less.
fn best(view: &View, ask: &Ask) -> Option<[PricedHop; 2]> {
    let mut best: Option<[PricedHop; 2]> = None;
    for middle in view.middles(&ask.input_mint, &ask.output_mint) {
        let first = best_hop(view, &ask.input_mint, &middle, ask.amount);
        let route = first.and_then(|first| {
            let delivered = first.quote.received();
            let second = best_hop(view, &middle, &ask.output_mint, delivered)?;
            Some([first, second])
        });
        let Some(route) = route else {
            continue;
        };
        let rank = |[first, second]: &[PricedHop; 2]| {
            let addresses = (first.view.address, second.view.address);
            (second.quote.received(), std::cmp::Reverse(addresses))
        };
        // Middles come in no order.
        if best.as_ref().is_none_or(|best| rank(&route) > rank(best)) {
            best = Some(route);
        }
    }
    best
}

fn best_hop(
    view: &View,
    input: &Pubkey,
    output: &Pubkey,
    amount: cpmm::Amount,
) -> Option<PricedHop> {
    let mut best: Option<PricedHop> = None;
    for pool in view.pools_for(input, output) {
        let direction = direction(&pool.snapshot, input, output)?;
        let Ok(hop) = PricedHop::quote(pool, direction, SwapMode::ExactIn, amount) else {
            continue;
        };
        if best
            .as_ref()
            .is_none_or(|best| hop.quote.is_better_than(&best.quote))
        {
            best = Some(hop);
        }
    }
    best
}

#[cfg(test)]
mod tests;
