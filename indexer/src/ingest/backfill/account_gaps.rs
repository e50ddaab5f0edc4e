//! Account gaps: slots that were read by RPC, and so without the changes of accounts, reported to webhooks.
//!
//! They are noted in the database before the first of the slots is stored and forgotten after they were reported, so that
//! none is left out, whenever the process ends. One that ends in between reports some slots twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};

use sluice_geyser::AccountUpdate;
use sluice_store::{AccountGap, Commitment, EventKind, OperationKind, StoreError, Timestamp};
use solana_pubkey::Pubkey;

use super::super::{
    outbox::{Outbox, OutboxBatch},
    session::SessionContext,
    session_end::SessionEnd,
};
use crate::{
    events::{compose, lost::Lost, operations, subscription_index::Subscriptions},
    rpc::Node,
    slots::{Gap, ResumePoint},
};

/// Accounts whose states are committed together.
const STATES_PER_COMMIT: usize = 100;

/// Accounts of one program that are sent after a gap, at most. Of a program with more none is sent: their owner reads them
/// better himself, and a node takes minutes for them.
const MAX_STATES_OF_PROGRAM: usize = 10_000;

/// What is sent as it is now.
#[derive(Default)]
struct Watched {
    /// The accounts, each with the program that it was known to belong to, where that is watched.
    accounts: BTreeMap<Pubkey, Option<Pubkey>>,
    /// Programs with too many accounts.
    too_large: Vec<Pubkey>,
}

/// Notes that the slots from `first` on, as far as a session has not stored them yet, lack the changes of accounts.
pub(super) async fn note(
    outbox: &Outbox,
    resume: &ResumePoint,
    first: u64,
) -> Result<(), StoreError> {
    let confirmed = resume.confirmed_checkpoint;
    let finalized = resume.finalized_checkpoint.or(confirmed);
    for (commitment, checkpoint) in [
        (Commitment::Confirmed, confirmed),
        (Commitment::Finalized, finalized),
    ] {
        let after = checkpoint.map_or(0, |slot| slot.saturating_add(1));
        let gap = AccountGap {
            commitment,
            first_slot: first.max(after),
        };
        outbox.store.note_account_gap(gap).await?;
    }
    Ok(())
}

/// Reports what was noted, through `last`, or through what was stored when the session began at `resume`: what follows,
/// its stream has whole. Each webhook at the commitment that wants changes
/// of accounts is sent a `gap`, which names the programs that have too many accounts, and then the others that it watches, by
/// address or by program, as `node` has them now.
pub(in super::super) async fn report(
    context: SessionContext,
    node: Option<Node>,
    subscriptions: Arc<Subscriptions>,
    (resume, last): (ResumePoint, Option<u64>),
) -> Result<(), SessionEnd> {
    let outbox = &context.outbox;
    for noted in outbox.store.account_gaps().await? {
        let (stored, served): (_, &[Commitment]) = match noted.commitment {
            Commitment::Finalized => (resume.finalized_checkpoint, &[Commitment::Finalized]),
            _ => (
                resume.confirmed_checkpoint,
                &[Commitment::Processed, Commitment::Confirmed],
            ),
        };
        let gap = Gap {
            first: noted.first_slot,
            last: last.or(stored).unwrap_or(0),
        };
        if gap.first <= gap.last {
            tracing::warn!(
                first = gap.first,
                last = gap.last,
                commitment = %noted.commitment,
                "changes of accounts in these slots are lost: they were read by RPC"
            );
            for commitment in served {
                report_at(outbox, node.as_ref(), &subscriptions, (*commitment, gap)).await?;
            }
        }
        outbox.store.forget_account_gap(noted.commitment).await?;
    }
    Ok(())
}

async fn report_at(
    outbox: &Outbox,
    node: Option<&Node>,
    subscriptions: &Subscriptions,
    (commitment, gap): (Commitment, Gap),
) -> Result<(), SessionEnd> {
    // Before it is told, since it says of which programs no account follows.
    let watched = match node {
        Some(node) => watched(outbox, node, subscriptions, (commitment, gap)).await?,
        None => Watched::default(),
    };
    let lost = Lost::of([EventKind::AccountChange].into_iter().collect());
    let lost = lost.without_states_of(&watched.too_large, subscriptions, commitment);
    let now = || Timestamp::from(outbox.clock.now());
    let mut messages = compose::gap(subscriptions, commitment, gap, &lost, now());
    let recipients = outbox
        .store
        .operation_recipients(OperationKind::Gap)
        .await?;
    let of_gap = (commitment, gap, &lost);
    messages.extend(operations::gaps(subscriptions, &recipients, of_gap, now()));
    let mut batch = OutboxBatch {
        messages,
        ..OutboxBatch::default()
    };
    batch.flush(outbox, Instant::now()).await?;
    let Some(node) = node else {
        return Ok(());
    };
    let watched = watched.accounts;
    let keys: Vec<Pubkey> = watched.keys().copied().collect();
    for keys in keys.chunks(STATES_PER_COMMIT) {
        let states = states(node, keys, (commitment, gap)).await;
        let of_programs = states.into_iter().map(|state| {
            let program = watched.get(&state.pubkey).copied().flatten();
            (state, program)
        });
        let states: Vec<_> = of_programs.collect();
        batch.messages = compose::account_states(subscriptions, commitment, gap, &states, now());
        batch.flush(outbox, Instant::now()).await?;
    }
    Ok(())
}

/// The accounts that webhooks at a commitment watch, by address or by program: those of a program that are known, and that the
/// node lists beside them.
async fn watched(
    outbox: &Outbox,
    node: &Node,
    subscriptions: &Subscriptions,
    (commitment, gap): (Commitment, Gap),
) -> Result<Watched, StoreError> {
    let by_address = subscriptions.watched_accounts_at(commitment);
    let mut watched = Watched {
        accounts: by_address.map(|account| (*account, None)).collect(),
        too_large: Vec::new(),
    };
    let programs: BTreeSet<Pubkey> = subscriptions
        .watched_owners_at(commitment)
        .copied()
        .collect();
    if programs.is_empty() {
        return Ok(watched);
    }
    let known = outbox.store.known_accounts().await?;
    for program in programs {
        let owned = known
            .iter()
            .filter(|known| known.owner == program && known.left_slot.is_none());
        let mut accounts: BTreeSet<Pubkey> = owned.map(|known| known.address).collect();
        match node.program_accounts(&program, gap.last).await {
            Ok((_, listed)) => accounts.extend(listed),
            Err(error) => tracing::warn!(
                %program, %error,
                "the accounts of a watched program are not listed after a gap: those that are known are sent"
            ),
        }
        if accounts.len() > MAX_STATES_OF_PROGRAM {
            tracing::warn!(
                %program, accounts = accounts.len(), MAX_STATES_OF_PROGRAM,
                "a watched program has too many accounts to be sent after a gap"
            );
            watched.too_large.push(program);
            continue;
        }
        let watched = &mut watched.accounts;
        watched.extend(accounts.into_iter().map(|account| (account, Some(program))));
    }
    Ok(watched)
}

/// The accounts as the node has them; none when it does not answer: that their changes are lost was said.
async fn states(
    node: &Node,
    keys: &[Pubkey],
    (commitment, gap): (Commitment, Gap),
) -> Vec<AccountUpdate> {
    // What is processed may leave the chain again, and no message would say so of a state.
    let commitment = commitment.max(Commitment::Confirmed);
    match node.accounts(keys, commitment, gap.last).await {
        Ok(states) => states,
        Err(error) => {
            tracing::error!(%error, "the states of watched accounts after a gap are not known");
            Vec::new()
        }
    }
}
