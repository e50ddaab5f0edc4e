//! Tenants: the owners of webhooks, as far as capacity is shared among them.

use std::{collections::HashMap, iter::Sum, sync::Arc};

use super::webhook_set::WebhookSet;

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

impl Sum for Load {
    fn sum<I: Iterator<Item = Self>>(loads: I) -> Self {
        loads.fold(Self::default(), Self::and)
    }
}

/// The webhook that a delivery is of, and its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holder {
    pub(crate) tenant: Tenant,
    pub(crate) webhook: i64,
}

/// What a process holds leases on, of each tenant and of each webhook. Only those that it holds any of are in it.
#[derive(Clone, Debug, Default)]
pub struct Held {
    tenants: HashMap<Tenant, Load>,
    webhooks: HashMap<i64, u32>,
    /// How many of them are of each tenant.
    webhooks_of: HashMap<Tenant, u32>,
}

impl Held {
    /// So much more is held of this webhook.
    pub fn add(&mut self, holder: Holder, load: Load) {
        let of_tenant = self.tenants.entry(holder.tenant).or_default();
        *of_tenant = of_tenant.and(load);
        let of_webhook = self.webhooks.entry(holder.webhook).or_insert_with(|| {
            *self.webhooks_of.entry(holder.tenant).or_default() += 1;
            0
        });
        *of_webhook = of_webhook.saturating_add(load.deliveries);
    }

    /// So much of it is held no more.
    pub fn remove(&mut self, holder: Holder, load: Load) {
        if let Some(of_tenant) = self.tenants.get_mut(&holder.tenant) {
            *of_tenant = of_tenant.without(load);
            if *of_tenant == Load::default() {
                self.tenants.remove(&holder.tenant);
            }
        }
        if let Some(of_webhook) = self.webhooks.get_mut(&holder.webhook) {
            *of_webhook = of_webhook.saturating_sub(load.deliveries);
            if *of_webhook == 0 {
                self.webhooks.remove(&holder.webhook);
                self.remove_webhook(holder.tenant);
            }
        }
    }

    fn of_webhook(&self, webhook: i64) -> u32 {
        self.webhooks.get(&webhook).copied().unwrap_or(0)
    }

    fn remove_webhook(&mut self, tenant: Tenant) {
        if let Some(webhooks) = self.webhooks_of.get_mut(&tenant) {
            *webhooks = webhooks.saturating_sub(1);
            if *webhooks == 0 {
                self.webhooks_of.remove(&tenant);
            }
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
    held: Arc<Held>,
}

impl TenantShares {
    /// The shares while so much is free, and so much is held of each tenant and webhook.
    #[must_use]
    pub const fn new(free: Load, held: Arc<Held>) -> Self {
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
        self.held.tenants.get(&tenant).copied().unwrap_or_default()
    }

    /// How many deliveries of a webhook, by its ordinal, the process holds.
    pub(crate) fn held_of_webhook(&self, webhook: i64) -> u32 {
        self.held.of_webhook(webhook)
    }

    /// Of which of these webhooks less is held now.
    #[must_use]
    pub fn freed(&self, now: &Held, webhooks: &WebhookSet) -> WebhookSet {
        let webhooks = webhooks.0.iter().copied();
        let is_less = |webhook: &i64| now.of_webhook(*webhook) < self.held_of_webhook(*webhook);
        WebhookSet(webhooks.filter(is_less).collect())
    }

    /// Of how many webhooks of a tenant the process holds deliveries.
    pub(crate) fn webhooks_held(&self, tenant: Tenant) -> u32 {
        self.held.webhooks_of.get(&tenant).copied().unwrap_or(0)
    }

    /// How much more a tenant may hold.
    #[must_use]
    pub fn left(&self, tenant: Tenant) -> Load {
        // As much again as it takes is free no more.
        self.free.without(self.held(tenant)).half()
    }

    /// How many deliveries each of so many webhooks of a tenant may have leased, where all that he may hold is split evenly: no
    /// few of them take it all, and have it wait for their turn at one endpoint while others' endpoints are idle. At least one.
    pub(crate) fn even_part(&self, tenant: Tenant, webhooks: u32) -> u32 {
        let all = self.held(tenant).and(self.left(tenant)).deliveries;
        all.div_ceil(webhooks.max(1)).max(1)
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
        let mut held = Held::default();
        let shares = |held: &Held| {
            let loads = held.tenants.values();
            let free = loads.fold(ALL, |free, load| free.without(*load));
            TenantShares::new(free, Arc::new(held.clone()))
        };
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
                held.tenants.insert(tenant, holds.without(ended));
            }
        }
        let fair = ALL.deliveries / (GREEDY + 1);
        let left = shares(&held).left(first).deliveries;
        assert!(left >= fair / 2, "{left} of {fair}");
        let most = held.tenants.values().map(|load| load.deliveries).max();
        assert!(most <= Some(2 * fair), "{most:?}, fair is {fair}");
    }

    #[test]
    fn what_a_tenant_may_hold_is_split_evenly_among_his_webhooks() {
        let all = |deliveries| Load {
            deliveries,
            bytes: 1 << 20,
        };
        let [greedy, another] = [1, 2].map(|number| Tenant(Some(number)));
        let holder = |webhook| Holder {
            tenant: greedy,
            webhook,
        };
        let mut held = Held::default();
        held.add(holder(7), all(1_000));
        held.add(holder(8), Load::of_one(1));
        let shares = TenantShares::new(all(7_191), Arc::new(held.clone()));
        assert_eq!(shares.even_part(greedy, 512), 8, "4,096 for 512");
        assert_eq!(shares.even_part(greedy, 100_000), 1, "one at least");
        assert_eq!(shares.even_part(another, 1), 3_596);
        assert_eq!(
            [7, 8, 9].map(|webhook| shares.held_of_webhook(webhook)),
            [1_000, 1, 0]
        );
        assert_eq!([greedy, another].map(|of| shares.webhooks_held(of)), [2, 0]);
        let all_three = WebhookSet([7, 8, 9].into());
        held.remove(holder(7), Load::of_one(1));
        held.add(holder(9), Load::of_one(1));
        assert_eq!(shares.freed(&held, &all_three), WebhookSet([7].into()));
        held.add(holder(7), Load::of_one(1));
        held.remove(holder(9), Load::of_one(1));
        assert!(shares.freed(&held, &all_three).is_empty());
        held.remove(holder(7), all(1_000));
        held.remove(holder(8), Load::of_one(1));
        assert!(held.tenants.is_empty() && held.webhooks.is_empty());
        assert!(held.webhooks_of.is_empty());
    }
}
