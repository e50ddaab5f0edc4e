//! Batches: which leased deliveries of a webhook go together in one POST (pure).
//!
//! In an ordered webhook those go together that were leased together, from the first pending one of a lane on. In any other
//! one those that were never refused: what is tried again goes alone, so that one message that is never accepted holds no
//! other back.

use std::collections::HashMap;

use sluice_store::{LeasedDelivery, WebhookId};

/// Deliveries that one POST makes, in order; never empty.
pub(super) type Together<T> = Vec<T>;

/// A batch that is not full.
struct Open {
    place: usize,
    messages: u32,
    bytes: u64,
}

/// Puts deliveries together, in the order given; `delivery` looks at one.
pub(super) fn put_together<T>(
    given: Vec<T>,
    delivery: impl Fn(&T) -> &LeasedDelivery,
) -> Vec<Together<T>> {
    let mut batches: Vec<Together<T>> = Vec::new();
    let mut lanes: HashMap<(WebhookId, u64), usize> = HashMap::new();
    let mut open: HashMap<WebhookId, Open> = HashMap::new();
    for each in given {
        let leased = delivery(&each);
        let webhook = &leased.lease.webhook;
        let place = match leased.batch {
            None => batches.len(),
            Some(_) if leased.lease.in_order => *lanes
                .entry((webhook.clone(), leased.head))
                .or_insert(batches.len()),
            Some(_) if leased.retry_index > 0 || leased.probe => batches.len(),
            Some(batch) => {
                let bytes = u64::try_from(leased.body.len()).unwrap_or(u64::MAX);
                let next = Open {
                    place: batches.len(),
                    messages: 0,
                    bytes: 0,
                };
                let fits = |open: &Open| {
                    open.messages < batch.max_messages
                        && open.bytes.saturating_add(bytes) <= u64::from(batch.max_bytes)
                };
                let filling = open.entry(webhook.clone()).or_insert(next);
                if filling.messages > 0 && !fits(filling) {
                    *filling = Open {
                        place: batches.len(),
                        messages: 0,
                        bytes: 0,
                    };
                }
                filling.messages = filling.messages.saturating_add(1);
                filling.bytes = filling.bytes.saturating_add(bytes);
                filling.place
            }
        };
        match batches.get_mut(place) {
            Some(batch) => batch.push(each),
            None => batches.push(vec![each]),
        }
    }
    batches
}
