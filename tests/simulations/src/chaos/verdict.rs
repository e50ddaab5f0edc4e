//! Verdict on what arrived: what the chain owes, no less and no more (pure).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use sluice_store::{Commitment, DeliveryOrder, EventKind};

use super::{
    events::{Event, What, number_of_emitted, number_of_signature, number_of_written},
    ledger::Arrived,
    numbered_chain::{Block, Fate},
    subscriber::Subscriber,
};

/// The name of messages that retract another one.
const REVERTED: &str = "reverted";

/// A webhook, and since when it must be sent everything.
#[derive(Clone, Debug)]
pub struct Promise {
    /// Its id.
    pub webhook: String,
    /// What it asked for.
    pub subscriber: Subscriber,
    /// The first slot of which it must miss nothing.
    pub since: u64,
}

/// What was found about one webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Messages that the chain calls for.
    pub expected: u64,
    /// Those of them that no receiver has accepted.
    pub lost: u64,
    /// Messages that arrived, each counted once.
    pub messages: u64,
    /// Arrivals beyond the first of each message.
    pub repeated: u64,
    /// Messages that retract others.
    pub reverted: u64,
    /// Events that were retracted and reinstated, under another id.
    pub reinstated: u64,
    /// What is wrong, in words; empty when nothing is.
    pub faults: Vec<String>,
}

/// A message, read.
struct Message<'a> {
    id: &'a str,
    sequence: u64,
    slot: u64,
    arrived: &'a Arrived,
    content: Content<'a>,
}

enum Content<'a> {
    Event(&'a Block, &'a Event),
    /// Takes back the message of this id and number.
    Reverted(&'a str, u64),
}

/// The chain, by the numbers of its events.
pub struct Played<'a>(HashMap<u64, (&'a Block, &'a Event)>);

impl<'a> Played<'a> {
    /// Indexes the blocks of a chain.
    #[must_use]
    pub fn new(blocks: &'a [Block]) -> Self {
        let events = blocks
            .iter()
            .flat_map(|block| block.events.iter().map(move |event| (block, event)));
        Self(events.map(|each| (each.1.number, each)).collect())
    }

    /// The chain's events that a webhook must be sent. Those of dropped blocks are not among them: an indexer
    /// that was away while such a block stood need not emit it.
    fn owed(&self, promise: &Promise) -> BTreeMap<u64, (&'a Block, &'a Event)> {
        let owed = self.0.iter().filter(|(_, (block, event))| {
            block.slot >= promise.since
                && block.fate == Fate::Kept
                && promise.subscriber.wants(event)
        });
        owed.map(|(number, each)| (*number, *each)).collect()
    }
}

/// Judges what one webhook was sent.
#[must_use]
pub fn judge(
    promise: &Promise,
    played: &Played<'_>,
    messages: &BTreeMap<String, Arrived>,
) -> Finding {
    let mut finding = Finding::default();
    let mut read = Vec::new();
    for (id, arrived) in messages {
        finding.messages += 1;
        finding.repeated += arrived.arrivals - 1;
        match read_message(promise, played, id, arrived) {
            Ok(message) => read.push(message),
            Err(fault) => finding
                .faults
                .push(format!("{id}: {fault}: {}", arrived.body)),
        }
    }
    read.sort_by_key(|message| message.sequence);
    numbers(&read, &mut finding);
    completeness(promise, played, &read, &mut finding);
    endings(&read, &mut finding);
    order_of_arrival(promise, &read, &mut finding);
    order_of_the_chain(promise, &read, &mut finding);
    for fault in &mut finding.faults {
        *fault = format!(
            "webhook at {}, order {}: {fault}",
            promise.subscriber.commitment,
            promise.subscriber.order.name()
        );
    }
    finding
}

fn read_message<'a>(
    promise: &Promise,
    played: &Played<'a>,
    id: &'a str,
    arrived: &'a Arrived,
) -> Result<Message<'a>, &'static str> {
    let body = &arrived.body;
    if body["webhookId"] != promise.webhook.as_str()
        || body["commitment"] != promise.subscriber.commitment.name()
    {
        return Err("meant for another webhook");
    }
    let sequence = body["sequence"].as_u64().ok_or("without a sequence")?;
    let slot = body["slot"].as_u64().ok_or("without a slot")?;
    let kind = body["type"].as_str().ok_or("without a type")?;
    let data = &body["data"];
    let content = match EventKind::from_name(kind) {
        Some(kind) => {
            let (block, event) = event_of(played, kind, data).ok_or("nothing of this happened")?;
            if block.slot != slot {
                return Err("of another slot");
            }
            if !promise.subscriber.is_owed(block) {
                return Err("of a block that is not part of the chain");
            }
            if !promise.subscriber.wants(event) {
                return Err("not asked for");
            }
            Content::Event(block, event)
        }
        None if kind == REVERTED && promise.subscriber.commitment == Commitment::Processed => {
            let first = data["messageId"].as_str().ok_or("retracts nothing")?;
            let number = data["sequence"].as_u64().ok_or("retracts nothing")?;
            Content::Reverted(first, number)
        }
        None => return Err("nothing that should be emitted"),
    };
    Ok(Message {
        id,
        sequence,
        slot,
        arrived,
        content,
    })
}

/// The event of the chain that a body is about, recognised by its number and compared in everything else.
fn event_of<'a>(
    played: &Played<'a>,
    kind: EventKind,
    data: &Value,
) -> Option<(&'a Block, &'a Event)> {
    let text = |field: &str| data[field].as_str();
    let bytes = || STANDARD.decode(text("data")?).ok();
    let number = match kind {
        EventKind::AccountChange => number_of_written(&bytes()?)?,
        EventKind::Transaction => number_of_signature(&text("signature")?.parse().ok()?)?,
        EventKind::ProgramEvent => number_of_emitted(&bytes()?)?,
    };
    let (block, event) = *played.0.get(&number)?;
    let same = match &event.what {
        What::AccountChange { pubkey, owner } => {
            kind == EventKind::AccountChange
                && text("pubkey")? == pubkey.to_string()
                && text("owner")? == owner.to_string()
        }
        What::Transaction {
            signature, program, ..
        } => {
            kind == EventKind::Transaction
                && text("signature")? == signature.to_string()
                && data["programs"][0] == program.to_string()
                && data["error"].is_null()
        }
        What::ProgramEvent {
            signature, program, ..
        } => {
            kind == EventKind::ProgramEvent
                && text("signature")? == signature.to_string()
                && text("programId")? == program.to_string()
        }
    };
    same.then_some((block, event))
}

/// Sequences are 1, 2, 3, … without holes, each once.
fn numbers(messages: &[Message<'_>], finding: &mut Finding) {
    for (message, number) in messages.iter().zip(1..) {
        if message.sequence != number {
            let found = message.sequence;
            finding
                .faults
                .push(format!("number {found} where {number} should be"));
            return;
        }
    }
}

/// Everything owed arrived and was accepted, and what arrived was.
fn completeness(
    promise: &Promise,
    played: &Played<'_>,
    messages: &[Message<'_>],
    finding: &mut Finding,
) {
    let mut accepted = BTreeSet::new();
    for message in messages {
        if message.arrived.first_acceptance.is_none() {
            finding.faults.push(format!(
                "{} was given up without being accepted",
                message.id
            ));
        } else if let Content::Event(_, event) = &message.content {
            accepted.insert(event.number);
        }
    }
    for (number, (block, event)) in played.owed(promise) {
        finding.expected += 1;
        if !accepted.contains(&number) {
            finding.lost += 1;
            finding.faults.push(format!(
                "event {number}, a {} in slot {}, is lost",
                event.what.kind(),
                block.slot
            ));
        }
    }
}

/// Each event was emitted once. At processed it may have been retracted and reinstated, under another id then, and
/// in the end it is emitted if its block is part of the chain, and else retracted.
fn endings(messages: &[Message<'_>], finding: &mut Finding) {
    let mut retracted = retractions(messages, finding);
    let mut emissions: BTreeMap<u64, Vec<&Message<'_>>> = BTreeMap::new();
    for message in messages {
        if let Content::Event(_, event) = &message.content {
            emissions.entry(event.number).or_default().push(message);
        }
    }
    for (number, emitted) in emissions {
        for (before, after) in emitted.iter().zip(emitted.iter().skip(1)) {
            finding.reinstated += 1;
            let between = retracted.remove(before.id);
            if between.is_none_or(|at| at > after.sequence) {
                finding.faults.push(format!(
                    "event {number} came as {} and as {}, and was not retracted between",
                    before.id, after.id
                ));
            }
        }
        let Some(last) = emitted.last() else { continue };
        let Content::Event(block, _) = &last.content else {
            continue;
        };
        let is_retracted = retracted.remove(last.id).is_some();
        if is_retracted != (block.fate == Fate::Dropped) {
            finding.faults.push(format!(
                "event {number} of slot {}, emitted as {}, was {}",
                block.slot,
                last.id,
                if is_retracted {
                    "retracted for nothing"
                } else {
                    "never retracted"
                }
            ));
        }
    }
}

/// The ids that were retracted, and under which number. Each was emitted before, and is retracted once.
fn retractions<'a>(messages: &[Message<'a>], finding: &mut Finding) -> BTreeMap<&'a str, u64> {
    let emitted: HashMap<&str, &Message<'_>> = messages
        .iter()
        .filter(|message| matches!(message.content, Content::Event(..)))
        .map(|message| (message.id, message))
        .collect();
    let mut retracted = BTreeMap::new();
    for message in messages {
        let Content::Reverted(first, number) = message.content else {
            continue;
        };
        finding.reverted += 1;
        let fits = emitted.get(first).is_some_and(|emitted| {
            emitted.sequence == number
                && emitted.sequence < message.sequence
                && emitted.slot == message.slot
        });
        if !fits || retracted.insert(first, message.sequence).is_some() {
            finding.faults.push(format!(
                "{} retracts {first}, which was not emitted, or was retracted before",
                message.id
            ));
        }
    }
    retracted
}

/// What must arrive in order did: the first arrival of each message came after the one before was accepted.
fn order_of_arrival(promise: &Promise, messages: &[Message<'_>], finding: &mut Finding) {
    let by_id: HashMap<&str, &Message<'_>> = messages
        .iter()
        .map(|message| (message.id, message))
        .collect();
    let mut last: HashMap<String, &Message<'_>> = HashMap::new();
    for message in messages {
        let lane = match promise.subscriber.order {
            DeliveryOrder::None => continue,
            DeliveryOrder::Strict => String::new(),
            DeliveryOrder::PerKey => {
                let emitted = match &message.content {
                    Content::Reverted(first, _) => by_id.get(first).copied(),
                    Content::Event(..) => Some(message),
                };
                match emitted.map(|emitted| &emitted.content) {
                    Some(Content::Event(_, event)) => event.what.order_key().to_string(),
                    _ => continue,
                }
            }
        };
        if let Some(before) = last.insert(lane, message) {
            let accepted = before.arrived.first_acceptance;
            if accepted.is_none_or(|accepted| accepted > message.arrived.first_arrival) {
                finding.faults.push(format!(
                    "number {} arrived before number {} was accepted",
                    message.sequence, before.sequence
                ));
            }
        }
    }
}

/// Where nothing is ever retracted, numbers follow the chain.
fn order_of_the_chain(promise: &Promise, messages: &[Message<'_>], finding: &mut Finding) {
    if promise.subscriber.commitment == Commitment::Processed {
        return;
    }
    for (before, after) in messages.iter().zip(messages.iter().skip(1)) {
        if before.slot > after.slot {
            finding.faults.push(format!(
                "number {} is of slot {}, number {} of slot {}",
                before.sequence, before.slot, after.sequence, after.slot
            ));
        }
    }
}

/// Faults of a kind repeat; a few of each webhook are enough to look into.
#[must_use]
pub fn first_faults(findings: &[Finding], most_each: usize) -> Vec<String> {
    let mut shown = BTreeSet::new();
    let mut faults = Vec::new();
    for finding in findings {
        for fault in finding.faults.iter().take(most_each) {
            if shown.insert(fault) {
                faults.push(fault.clone());
            }
        }
        if let Some(more) = finding.faults.len().checked_sub(most_each + 1) {
            faults.push(format!("  and {} more of this webhook", more + 1));
        }
    }
    faults
}

#[cfg(test)]
pub(super) mod tests;
