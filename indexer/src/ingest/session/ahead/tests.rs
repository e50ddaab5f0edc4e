//! What is composed ahead is what is composed at the confirmation, and is used for nothing else.

use sluice_store::{ActiveWebhooks, Filters, Revision};

use super::*;
use crate::{
    events::subscriber::fixtures::active_webhook,
    slots::{Block, LastOwners, SlotEvent, SlotEvents, Taken, Taking, slot_events::fixtures},
};

/// A slot with so many accounts, all of which a webhook watches.
fn source(slot: u64, accounts: u8, watching: &[u8]) -> Source {
    let mut events = SlotEvents::default();
    for account in 0..accounts {
        events.add(SlotEvent::Account(fixtures::account(slot, account, 1)));
    }
    let filters = Filters {
        accounts: events.writes().map(|write| write.pubkey).collect(),
        ..Filters::default()
    };
    let webhook = |number: &u8| active_webhook(*number, Commitment::Confirmed, filters.clone());
    let active = ActiveWebhooks {
        revision: Revision(1),
        webhooks: watching.iter().map(webhook).collect(),
    };
    Source {
        emission: Emission {
            commitment: Commitment::Confirmed,
            block: Arc::new(block(slot)),
            events: Arc::new(events),
            last_owners: Arc::default(),
        },
        subscriptions: Arc::new(Subscriptions::new(&active)),
        idls: Arc::new(Idls::built_in().expect("understood")),
    }
}

fn block(slot: u64) -> Block {
    Block {
        slot,
        hash: format!("hash{slot}"),
        parent: slot - 1,
        time: Some(1_767_225_600),
    }
}

/// What is composed ahead of these, once it is.
async fn composed(sources: &[Source]) -> Ahead {
    let mut ahead = Ahead::default();
    for source in sources {
        ahead.begin(source.clone());
    }
    while let Some(ended) = ahead.composing.join_next().await {
        ahead.keep(ended.expect("nothing panics"));
    }
    ahead
}

#[tokio::test]
async fn it_is_what_the_confirmation_would_compose_in_two_packed_pieces() {
    let source = source(7, 100, &[1, 2]);
    let pieces = composed(std::slice::from_ref(&source)).await.take(&source);
    let pieces = pieces.expect("it is composed");
    let lengths: Vec<_> = pieces
        .iter()
        .map(|piece| (piece.messages.len(), piece.is_last))
        .collect();
    assert_eq!(lengths, [(128, false), (72, true)]);
    assert!(pieces.iter().all(|piece| piece.packed.is_some()));
    let emission = &source.emission;
    let messages: Vec<_> = compose::events(
        &source.subscriptions,
        &source.idls,
        emission.commitment,
        &emission.block,
        (&emission.events, &emission.last_owners),
        Timestamp::from_unix_seconds(0),
    )
    .collect();
    let ahead: Vec<_> = pieces
        .into_iter()
        .flat_map(|piece| piece.messages)
        .collect();
    assert_eq!(ahead, messages);
}

#[tokio::test]
async fn what_is_made_of_anything_else_is_not_used() {
    let made_of = source(7, 3, &[1]);
    let with = |change: fn(&mut Source)| {
        let mut changed = made_of.clone();
        change(&mut changed);
        changed
    };
    let others = [
        with(|other| other.emission.commitment = Commitment::Finalized),
        with(|other| other.emission.block = Arc::new(block(7))),
        with(|other| other.emission.events = Arc::default()),
        with(|other| other.subscriptions = source(7, 3, &[1]).subscriptions),
        with(|other| other.idls = source(7, 3, &[1]).idls),
        with(|other| {
            let taking = Taking {
                account: fixtures::account(7, 0, 1).pubkey,
                last_owner: fixtures::program(),
                by: fixtures::transaction(7, 0).signature,
            };
            let state = fixtures::account(7, 0, 1);
            let taken = vec![Taken { taking, state }];
            other.emission.last_owners = Arc::new(LastOwners::default().with_taken(taken));
        }),
    ];
    for other in &others {
        let mut ahead = composed(std::slice::from_ref(&made_of)).await;
        assert!(ahead.take(other).is_none());
    }
    let equal = with(|other| other.emission.last_owners = Arc::new(LastOwners::default()));
    let mut ahead = composed(&[made_of]).await;
    assert!(ahead.take(&equal).is_some());
    assert!(ahead.take(&equal).is_none());
}

#[tokio::test]
async fn only_so_much_is_kept_and_nothing_of_slots_before() {
    let sources: Vec<_> = (7..20).map(|slot| source(slot, 1, &[1])).collect();
    let mut ahead = composed(&sources).await;
    assert_eq!(ahead.composed.len(), MOST_SLOTS);
    assert!(ahead.take(&sources[2]).is_some());
    let kept: Vec<_> = ahead.composed.keys().copied().collect();
    assert_eq!(kept, [10]);
}

#[tokio::test]
async fn what_would_not_be_staged_or_has_no_time_is_not_composed() {
    let crowd: Vec<u8> = (1..=6).collect();
    let mut undated = source(7, 1, &[1]);
    undated.emission.block = Arc::new(Block {
        time: None,
        ..block(7)
    });
    let sources = [source(8, 100, &crowd), source(9, 1, &[]), undated];
    assert!(composed(&sources).await.composed.is_empty());
}

#[tokio::test]
async fn what_is_not_composed_yet_is_not_waited_for() {
    let source = source(7, 1, &[1]);
    let mut ahead = Ahead::default();
    ahead.begin(source.clone());
    assert!(ahead.take(&source).is_none());
}
