//! Webhook events that the receiver must get for a swap.

use std::time::Duration;

use anyhow::{Context, ensure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;
use swap_guard_interface::Swapped as SwappedEvent;

use crate::receiver::{Message, Receiver};

use super::{swap::Swapped, transcript::Transcript};

/// How long after the swap's confirmation a delivery may arrive; it usually has arrived before.
const DELIVERY_DEADLINE: Duration = Duration::from_secs(15);

/// Waits for the three kinds of event about a swap. The receiver has checked their signatures.
pub async fn expect(
    transcript: &mut Transcript,
    receiver: &mut Receiver,
    swapped: &Swapped,
) -> anyhow::Result<()> {
    let begun = std::time::Instant::now();
    let signature = swapped.signature.to_string();
    let about_it = |message: &Message, kind: &str| {
        message.kind() == kind && text(message, "signature") == Some(&signature)
    };
    let event = receiver
        .wait_for("programEvent of the swap", DELIVERY_DEADLINE, |messages| {
            messages
                .iter()
                .find(|message| about_it(message, "programEvent"))
                .cloned()
        })
        .await?;
    check_event(&event, swapped)?;
    let transaction = receiver
        .wait_for("transaction of the swap", DELIVERY_DEADLINE, |messages| {
            messages
                .iter()
                .find(|message| about_it(message, "transaction"))
                .cloned()
        })
        .await?;
    let pool = swapped.pool.to_string();
    let change = receiver
        .wait_for("accountChange of the pool", DELIVERY_DEADLINE, |messages| {
            messages
                .iter()
                .find(|message| {
                    message.kind() == "accountChange"
                        && text(message, "pubkey") == Some(&pool)
                        && slot(message) == Some(swapped.slot)
                })
                .cloned()
        })
        .await?;
    let waited = begun.elapsed().as_millis();
    transcript.step(
        "webhooks",
        &format!("three kinds with good signatures, {waited} ms after confirmation"),
    );
    for message in [&change, &transaction, &event] {
        transcript.detail(&format!("{:<14}{}", message.kind(), message.id));
    }
    Ok(())
}

/// The event's own account of the swap must agree with the balance that was measured.
fn check_event(message: &Message, swapped: &Swapped) -> anyhow::Result<()> {
    let raw = text(message, "data").context("the programEvent carries no data")?;
    let bytes = BASE64.decode(raw).context("its data is not base64")?;
    let event = SwappedEvent::decode(&bytes).context("its data is no Swapped")?;
    let decoded = message.body.pointer("/data/fields/received");
    ensure!(
        decoded.and_then(Value::as_u64) == Some(event.received),
        "the decoded fields say {decoded:?}, the raw bytes {}",
        event.received
    );
    ensure!(
        event.received == swapped.received && slot(message) == Some(swapped.slot),
        "the event says {event:?}, but the wallet received {} in slot {}",
        swapped.received,
        swapped.slot
    );
    Ok(())
}

fn text<'a>(message: &'a Message, field: &str) -> Option<&'a str> {
    message.body.get("data")?.get(field)?.as_str()
}

fn slot(message: &Message) -> Option<u64> {
    message.body.get("slot").and_then(Value::as_u64)
}
