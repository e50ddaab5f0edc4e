//! Recent fees: prices at which transactions landed lately in pools, from one call for all who ask at once.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use solana_pubkey::Pubkey;
use tokio::sync::OnceCell;

use super::call::Node;
use crate::{error::ApiError, extract::Pools};

/// How long an answer is repeated: five slots, of the 150 that it is about.
const KEPT_FOR: Duration = Duration::from_secs(2);

/// Routes whose answers are kept at most, each under 4 KiB. Beyond, the oldest is forgotten.
const MOST_KEPT: usize = 1_024;

/// The lowest price of a compute unit that landed in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPrice {
    /// The slot.
    pub slot: u64,
    /// Micro-lamports; 0 where it was free.
    pub unit_price: u64,
}

type Prices = Arc<[SlotPrice]>;

/// One question, and its answer with the moment when it came.
type Asking = Arc<OnceCell<(Instant, Prices)>>;

/// The answers that were given lately.
#[derive(Default)]
pub(super) struct RecentFees(Mutex<HashMap<Pools, Asking>>);

impl RecentFees {
    /// The prices of the last slots in which these accounts of `pools` were written. Of those who ask at the same time one
    /// makes the call, and the others wait for it.
    pub(super) async fn read(
        &self,
        node: &Node,
        pools: Pools,
        accounts: &[Pubkey],
    ) -> Result<Prices, ApiError> {
        let asking = begin(&mut self.0.lock(), Instant::now(), pools);
        let fetch = async {
            let prices = fetch(node, accounts).await?;
            Ok::<_, ApiError>((Instant::now(), prices))
        };
        let (_, prices) = asking.get_or_try_init(|| fetch).await?;
        Ok(Arc::clone(prices))
    }
}

/// The question that is being answered, or whose answer is recent; or else a new one.
fn begin(kept: &mut HashMap<Pools, Asking>, now: Instant, pools: Pools) -> Asking {
    let answered = |asking: &Asking| asking.get().map(|(at, _)| *at);
    let is_old = |asking: &Asking| {
        answered(asking).is_some_and(|at| now.saturating_duration_since(at) >= KEPT_FOR)
    };
    if let Some(known) = kept.get(&pools).filter(|known| !is_old(known)) {
        return Arc::clone(known);
    }
    kept.retain(|_, asking| !is_old(asking));
    if kept.len() >= MOST_KEPT {
        // One that is not answered yet is the youngest, and is found by those who wait for it anyway.
        let oldest = kept
            .iter()
            .min_by_key(|(_, asking)| answered(asking).unwrap_or(now));
        if let Some(oldest) = oldest.map(|(pools, _)| *pools) {
            kept.remove(&oldest);
        }
    }
    let asking = Asking::default();
    kept.insert(pools, Arc::clone(&asking));
    asking
}

async fn fetch(node: &Node, accounts: &[Pubkey]) -> Result<Prices, ApiError> {
    let call = node.call("getRecentPrioritizationFees", async |client| {
        client.get_recent_prioritization_fees(accounts).await
    });
    let prices = call.await?.into_iter().map(|fee| SlotPrice {
        slot: fee.slot,
        unit_price: fee.prioritization_fee,
    });
    Ok(prices.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools(number: usize) -> Pools {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Pools::One(Pubkey::new_from_array(bytes))
    }

    fn answer(asking: &Asking, at: Instant) {
        asking.set((at, Arc::from([]))).expect("the first answer");
    }

    #[test]
    fn an_answer_is_repeated_while_it_is_recent_and_one_call_is_made_at_a_time() {
        let (mut kept, begun) = (HashMap::new(), Instant::now());
        let first = begin(&mut kept, begun, pools(1));
        let waiting = begin(&mut kept, begun + KEPT_FOR * 9, pools(1));
        assert!(Arc::ptr_eq(&first, &waiting), "a second call was made");
        answer(&first, begun);
        let recent = begun + KEPT_FOR - Duration::from_millis(1);
        let again = begin(&mut kept, recent, pools(1));
        assert!(Arc::ptr_eq(&first, &again));
        let later = begin(&mut kept, begun + KEPT_FOR, pools(1));
        assert!(!Arc::ptr_eq(&first, &later));
    }

    #[test]
    fn no_more_answers_are_kept_than_are_allowed() {
        let (mut kept, begun) = (HashMap::new(), Instant::now());
        for number in 0..MOST_KEPT * 2 {
            let at = begun + Duration::from_micros(u64::try_from(number).expect("small"));
            answer(&begin(&mut kept, at, pools(number)), at);
            assert!(kept.len() <= MOST_KEPT);
        }
        assert!(kept.contains_key(&pools(MOST_KEPT * 2 - 1)));
        assert!(!kept.contains_key(&pools(0)));
    }
}
