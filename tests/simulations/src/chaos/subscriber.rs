//! Subscribers and what they are owed, by the words of the interface and not by the indexer's code (pure).

use sluice_store::{Commitment, DeliveryOrder, EventKind, Filters};
use solana_pubkey::Pubkey;

use super::{
    events::{self, Event, What},
    numbered_chain::{Block, Fate},
};

/// What a webhook asks for.
#[derive(Clone, Debug)]
pub struct Subscriber {
    /// What it watches.
    pub filters: Filters,
    /// The kinds it wants.
    pub kinds: Vec<EventKind>,
    /// The commitment at which its events are emitted.
    pub commitment: Commitment,
    /// Order of delivery.
    pub order: DeliveryOrder,
}

impl What {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::AccountChange { .. } => EventKind::AccountChange,
            Self::Transaction { .. } => EventKind::Transaction,
            Self::ProgramEvent { .. } => EventKind::ProgramEvent,
        }
    }

    /// What stays in order with it when a webhook asks for order per key.
    #[must_use]
    pub const fn order_key(&self) -> Pubkey {
        match self {
            Self::AccountChange { pubkey, .. } => *pubkey,
            Self::Transaction { signer, .. } | Self::ProgramEvent { signer, .. } => *signer,
        }
    }
}

impl Subscriber {
    /// Whether it asked for an event.
    #[must_use]
    pub fn wants(&self, event: &Event) -> bool {
        let account = |key: &Pubkey| self.filters.accounts.contains(key);
        let program = |key: &Pubkey| self.filters.programs.contains(key);
        let concerned = match &event.what {
            What::AccountChange { pubkey, owner } => account(pubkey) || program(owner),
            What::Transaction {
                signer,
                program: invoked,
                mentioned,
                ..
            } => program(invoked) || [signer, invoked, mentioned].into_iter().any(account),
            What::ProgramEvent {
                program: emitter, ..
            } => program(emitter),
        };
        concerned && self.kinds.contains(&event.what.kind())
    }

    /// Whether it is owed messages about a block at all.
    #[must_use]
    pub fn is_owed(&self, block: &Block) -> bool {
        block.fate == Fate::Kept || self.commitment == Commitment::Processed
    }
}

/// Webhooks of every commitment and every order, for as long as there are events.
#[must_use]
pub fn from_the_start() -> Vec<Subscriber> {
    let all = EventKind::ALL.to_vec();
    let mut subscribers = Vec::new();
    for commitment in Commitment::ALL {
        for order in DeliveryOrder::ALL {
            let (accounts, programs, kinds) = match order {
                DeliveryOrder::None => (vec![], vec![0, 1], all.clone()),
                DeliveryOrder::PerKey => (vec![1, 2, 3], vec![2], all.clone()),
                DeliveryOrder::Strict => (
                    vec![],
                    vec![1],
                    vec![EventKind::AccountChange, EventKind::ProgramEvent],
                ),
            };
            subscribers.push(Subscriber {
                filters: filters(&accounts, &programs),
                kinds,
                commitment,
                order,
            });
        }
    }
    subscribers
}

/// Webhooks that are made one after the other while everything runs, on addresses of which the others are not owed all.
#[must_use]
pub fn latecomers() -> Vec<Subscriber> {
    let orders = DeliveryOrder::ALL.into_iter().rev();
    let keys = [4, 5, 7];
    Commitment::ALL
        .into_iter()
        .zip(orders)
        .zip(keys)
        .map(|((commitment, order), account)| Subscriber {
            filters: filters(&[account], &[]),
            kinds: vec![EventKind::AccountChange, EventKind::Transaction],
            commitment,
            order,
        })
        .collect()
}

fn filters(accounts: &[u8], programs: &[u8]) -> Filters {
    Filters {
        accounts: accounts.iter().map(|each| events::account(*each)).collect(),
        programs: programs.iter().map(|each| events::program(*each)).collect(),
        ..Filters::default()
    }
}
