//! The guard called by Anchor 1's client, which knows it from the committed IDL alone.
//!
//! The client is held to recorded swaps, one of every form, which `tests/programs` executes.

mod recorded;
mod requests;

use anchor_lang::{AnchorDeserialize, Discriminator};
use requests::{Swapped, requests};

#[test]
fn an_anchor_1_client_builds_every_form_as_it_was_executed() {
    let recorded = recorded::all();
    let built = requests(&recorded);
    assert_eq!(recorded.swaps.len(), built.len());
    for (swap, built) in recorded.swaps.iter().zip(built) {
        assert_eq!(built.program_id, requests::GUARD);
        assert_eq!(built.accounts, swap.metas(), "{}", swap.name());
        assert_eq!(built.data, swap.bytes("data"), "{}", swap.name());
    }
}

#[test]
fn an_anchor_1_client_reads_the_event_of_every_form() {
    for swap in recorded::all().swaps {
        let event = swap.bytes("event");
        let body = event.strip_prefix(Swapped::DISCRIMINATOR);
        let body = body.expect("the guard logs this event");
        let read = Swapped::try_from_slice(body).expect("it is one");
        assert_eq!(read.user, swap.address("user"), "{}", swap.name());
        assert_eq!(read.pool, swap.address("pool"), "{}", swap.name());
        assert_eq!(read.spent, swap.amount("spent"), "{}", swap.name());
        assert_eq!(read.received, swap.amount("received"), "{}", swap.name());
        assert!(read.received > 0, "{}", swap.name());
    }
}
