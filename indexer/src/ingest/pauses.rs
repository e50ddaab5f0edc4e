//! Pauses: tells webhooks that were switched off which slots they did not watch, before anything of later slots.

use sluice_store::{Commit, StoreError, Timestamp};

use super::outbox::Outbox;
use crate::events::compose;

/// Tells of each pause that is over. Whoever serves webhooks calls this after learning which there are, and before any event
/// is emitted to them. One that is told and not yet forgotten when the process ends is told again, under the same id.
pub(super) async fn report(outbox: &Outbox) -> Result<(), StoreError> {
    for pause in outbox.store.ended_pauses().await? {
        let now = Timestamp::from(outbox.clock.now());
        let message = compose::resumed(&pause, now);
        let committed = outbox
            .store
            .commit(&Commit::messages(&[message], now))
            .await?;
        outbox.stored.tell(&committed.unleased);
        outbox.store.forget_pause(&pause).await?;
        tracing::info!(
            webhook = %pause.webhook,
            first = pause.first_slot,
            last = pause.last_slot,
            "a webhook watches again, and was told which slots it did not watch"
        );
    }
    Ok(())
}
