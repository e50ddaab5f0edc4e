//! Tenants: the owners of webhooks, as far as capacity is shared among them.

use std::{collections::HashMap, sync::Arc};

/// The owner of webhooks: an API key, or the keyless caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(pub(crate) Option<i64>);

/// Deliveries, and the bytes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many.
    pub deliveries: u32,
    /// Bytes of their bodies together.
    pub bytes: u64,
}

impl Load {
    /// One delivery with a body of so many bytes.
    #[must_use]
    pub const fn of_one(bytes: u64) -> Self {
        Self {
            deliveries: 1,
            bytes,
        }
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            deliveries: self.deliveries.saturating_add(other.deliveries),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// What is left without `other`, nothing when it is more.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self {
            deliveries: self.deliveries.saturating_sub(other.deliveries),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    /// What is left without `other`; `None` when it is more.
    #[must_use]
    pub fn less(self, other: Self) -> Option<Self> {
        Some(Self {
            deliveries: self.deliveries.checked_sub(other.deliveries)?,
            bytes: self.bytes.checked_sub(other.bytes)?,
        })
    }

    const fn half(self) -> Self {
        Self {
            deliveries: self.deliveries.div_ceil(2),
            bytes: self.bytes.div_ceil(2),
        }
    }
}

/// The part of what is left of a tenant's share that one webhook may have: with hundreds of endpoints that hang, a few
/// deliveries are left for the next one.
const WEBHOOKS_PER_SHARE: u32 = 16;

/// How a process shares its capacity, among tenants and then among the webhooks of each. No tenant may hold more of it than
/// he leaves free: however many are greedy, something is free for the next one then, and one that is alone may have half.
#[derive(Clone, Debug)]
pub struct TenantShares {
    free: Load,
    held: Arc<HashMap<Tenant, Load>>,
}

impl TenantShares {
    /// The shares while so much is free, and each tenant holds so much.
    #[must_use]
    pub const fn new(free: Load, held: Arc<HashMap<Tenant, Load>>) -> Self {
        Self { free, held }
    }

    /// No limits for any tenant.
    #[must_use]
    pub fn unlimited() -> Self {
        let free = Load {
            deliveries: u32::MAX,
            bytes: u64::MAX,
        };
        Self::new(free, Arc::default())
    }

    /// What the process holds of a tenant's deliveries.
    #[must_use]
    pub fn held(&self, tenant: Tenant) -> Load {
        self.held.get(&tenant).copied().unwrap_or_default()
    }

    /// How much more a tenant may hold.
    #[must_use]
    pub fn left(&self, tenant: Tenant) -> Load {
        // As much again as it takes is free no more.
        self.free.without(self.held(tenant)).half()
    }

    /// How many deliveries one webhook may have leased where so much is left of its tenant's share.
    #[must_use]
    pub const fn quota_of_webhook(left: Load) -> u32 {
        left.deliveries.div_ceil(WEBHOOKS_PER_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_tenants_are_greedy_a_part_is_left_for_the_next() {
        const ALL: Load = Load {
            deliveries: 8192,
            bytes: 1 << 20,
        };
        const GREEDY: u32 = 30;
        let mut held: HashMap<Tenant, Load> = HashMap::new();
        let free = |held: &HashMap<Tenant, Load>| {
            held.values().fold(ALL, |free, load| free.without(*load))
        };
        let shares =
            |held: &HashMap<Tenant, Load>| TenantShares::new(free(held), Arc::new(held.clone()));
        let first = Tenant(None);
        assert_eq!(
            shares(&held).left(first).deliveries,
            ALL.deliveries / 2,
            "half when alone"
        );
        for _ in 0..100 {
            for number in 0..GREEDY {
                let tenant = Tenant(Some(i64::from(number)));
                let now = shares(&held);
                // Each takes all that it gets, and an eighth of what it holds has ended.
                let holds = now.held(tenant).and(now.left(tenant));
                let ended = Load {
                    deliveries: holds.deliveries.div_ceil(8),
                    bytes: holds.bytes.div_ceil(8),
                };
                held.insert(tenant, holds.without(ended));
            }
        }
        let fair = ALL.deliveries / (GREEDY + 1);
        let left = shares(&held).left(first).deliveries;
        assert!(left >= fair / 2, "{left} of {fair}");
        let most = held.values().map(|load| load.deliveries).max();
        assert!(most <= Some(2 * fair), "{most:?}, fair is {fair}");
    }
}
