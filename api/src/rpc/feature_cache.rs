//! Feature cache: whether the cluster has activated a feature, asked of its feature account and remembered.

use std::time::{Duration, Instant};

use parking_lot::RwLock;
use solana_pubkey::{Pubkey, pubkey};

use super::account::HeldAccount;

/// Account of the feature by which a cluster takes transactions of version 1 (SIMD-0385).
pub(super) const TRANSACTION_V1: Pubkey = pubkey!("txv1aq4pp281K9um3tnPgkfX8UqtFT6wcVW3hNezGLL");

/// Owner of feature accounts.
const FEATURE_PROGRAM: Pubkey = pubkey!("Feature111111111111111111111111111111111111");

/// How long an inactive feature is believed to be so. Features become active where an epoch begins, so that this is soon
/// enough, and however many ask, the node is asked once in this time.
const RECHECK: Duration = Duration::from_secs(30);

/// What is known of one feature.
#[derive(Default)]
pub(super) struct FeatureCache(RwLock<Option<(bool, Instant)>>);

impl FeatureCache {
    /// Whether it is active; `None` when the node is to be asked. One that is active stays so.
    pub(super) fn known(&self, now: Instant) -> Option<bool> {
        let (active, asked) = (*self.0.read())?;
        let holds = active || now.saturating_duration_since(asked) < RECHECK;
        holds.then_some(active)
    }

    /// Remembers what the feature's account shows.
    pub(super) fn learn(&self, account: Option<&HeldAccount>, asked: Instant) -> bool {
        let active = account.is_some_and(is_active);
        *self.0.write() = Some((active, asked));
        active
    }
}

/// Whether the account is a feature's that has a slot of activation: an optional 64-bit number, of which the first byte says
/// whether it is there. One that only waits for its epoch has none.
fn is_active(account: &HeldAccount) -> bool {
    account.program == FEATURE_PROGRAM && account.data.first() == Some(&1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(program: Pubkey, data: &[u8]) -> HeldAccount {
        HeldAccount {
            program,
            lamports: 1,
            data: data.to_vec(),
        }
    }

    #[test]
    fn only_a_features_account_with_a_slot_is_active() {
        let active = [1, 7, 0, 0, 0, 0, 0, 0, 0];
        assert!(is_active(&account(FEATURE_PROGRAM, &active)));
        assert!(!is_active(&account(FEATURE_PROGRAM, &[0; 9])));
        assert!(!is_active(&account(FEATURE_PROGRAM, &[])));
        assert!(!is_active(&account(Pubkey::default(), &active)));
    }

    #[test]
    fn an_inactive_feature_is_asked_for_again_and_an_active_one_never() {
        let (cache, begun) = (FeatureCache::default(), Instant::now());
        assert_eq!(cache.known(begun), None);
        assert!(!cache.learn(None, begun));
        assert_eq!(cache.known(begun), Some(false));
        assert_eq!(cache.known(begun + RECHECK), None);
        assert!(cache.learn(Some(&account(FEATURE_PROGRAM, &[1; 9])), begun));
        assert_eq!(cache.known(begun + RECHECK * 1_000), Some(true));
    }
}
