//! History of a run: webhooks, blocks and arrivals as lines of JSON, to be judged afterwards (pure).
//!
//! Whoever has the file can judge it: neither the processes nor the database of the run are needed. A line is an object
//! with one member, `webhook`, `block` or `arrival`; arrivals stand in the order in which they came.

use std::str::FromStr;

use serde_json::{Value, json};
use sluice_store::{Commitment, DeliveryOrder, EventKind, Filters, WebhookId};

use super::{
    events::{Event, What},
    ledger::{Arrival, Headers, Ledger},
    numbered_chain::{Block, Fate},
    subscriber::Subscriber,
    verdict::{Finding, Played, Promise, judge},
};

/// What was owed, what happened, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The webhooks, each with its secret.
    pub webhooks: Vec<(Promise, String)>,
    /// The chain.
    pub blocks: Vec<Block>,
    /// The requests, in the order in which they came.
    pub arrivals: Vec<Arrival>,
}

/// What a history shows.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Of each webhook.
    pub findings: Vec<Finding>,
    /// What no message should be like.
    pub faults: Vec<String>,
}

impl Judgement {
    /// Everything that is wrong, in words.
    pub fn all_faults(&self) -> impl Iterator<Item = &String> {
        let found = self.findings.iter().flat_map(|finding| &finding.faults);
        self.faults.iter().chain(found)
    }
}

impl History {
    /// Judges everything that came.
    ///
    /// # Errors
    /// When a secret is none.
    pub fn judge(&self) -> Result<Judgement, String> {
        let mut ledger = Ledger::default();
        for (promise, secret) in &self.webhooks {
            let webhook = WebhookId::parse(&promise.webhook).map_err(|error| error.to_string())?;
            let expected = ledger.expect(&webhook, secret);
            expected.map_err(|error| format!("the secret of {webhook}: {error}"))?;
        }
        for arrival in &self.arrivals {
            ledger.take(arrival);
        }
        let played = Played::new(&self.blocks);
        let findings = self.webhooks.iter().filter_map(|(promise, _)| {
            let received = ledger.webhooks.get(&promise.webhook)?;
            Some(judge(promise, &played, &received.messages))
        });
        Ok(Judgement {
            findings: findings.collect(),
            faults: ledger.faults.iter().cloned().collect(),
        })
    }

    /// The lines of the file.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let webhooks = self
            .webhooks
            .iter()
            .map(|(promise, secret)| webhook_line(promise, secret));
        let blocks = self.blocks.iter().map(block_line);
        let arrivals = self.arrivals.iter().map(arrival_line);
        webhooks.chain(blocks).chain(arrivals)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first line that is not understood, by its number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut history = Self::default();
        for (line, number) in text.lines().zip(1..) {
            let read = history.read(line);
            read.map_err(|fault| format!("line {number}: {fault}"))?;
        }
        Ok(history)
    }

    fn read(&mut self, line: &str) -> Result<(), String> {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if let Some(webhook) = line.get("webhook") {
            self.webhooks.push(webhook_of(webhook)?);
        } else if let Some(block) = line.get("block") {
            self.blocks.push(block_of(block)?);
        } else if let Some(arrival) = line.get("arrival") {
            self.arrivals.push(arrival_of(arrival)?);
        } else {
            return Err("neither a webhook, nor a block, nor an arrival".to_owned());
        }
        Ok(())
    }
}

/// The line of a request.
#[must_use]
pub fn arrival_line(arrival: &Arrival) -> String {
    json!({ "arrival": {
        "webhook": arrival.webhook,
        "id": arrival.headers.id,
        "timestamp": arrival.headers.timestamp,
        "signature": arrival.headers.signature,
        "body": arrival.body,
        "accepted": arrival.accepted,
        "at": arrival.at,
        "clocksOff": arrival.clocks_off,
    }})
    .to_string()
}

/// The line of a webhook with this secret.
#[must_use]
pub fn webhook_line(promise: &Promise, secret: &str) -> String {
    let Subscriber {
        filters,
        kinds,
        commitment,
        order,
    } = &promise.subscriber;
    let texts = |keys: &[solana_pubkey::Pubkey]| -> Vec<String> {
        keys.iter().map(ToString::to_string).collect()
    };
    json!({ "webhook": {
        "id": promise.webhook,
        "secret": secret,
        "since": promise.since,
        "accounts": texts(&filters.accounts),
        "programs": texts(&filters.programs),
        "kinds": kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        "commitment": commitment.name(),
        "order": order.name(),
    }})
    .to_string()
}

fn webhook_of(line: &Value) -> Result<(Promise, String), String> {
    let keys = |field: &str| list(line, field, |key| key.parse().ok());
    let promise = Promise {
        webhook: text(line, "id")?.to_owned(),
        subscriber: Subscriber {
            filters: Filters {
                accounts: keys("accounts")?,
                programs: keys("programs")?,
                ..Filters::default()
            },
            kinds: list(line, "kinds", EventKind::from_name)?,
            commitment: named(line, "commitment", Commitment::from_name)?,
            order: named(line, "order", DeliveryOrder::from_name)?,
        },
        since: number(line, "since")?,
    };
    Ok((promise, text(line, "secret")?.to_owned()))
}

/// The line of a block.
#[must_use]
pub fn block_line(block: &Block) -> String {
    json!({ "block": {
        "slot": block.slot,
        "kept": block.fate == Fate::Kept,
        "events": block.events.iter().map(event_line).collect::<Vec<_>>(),
    }})
    .to_string()
}

fn block_of(line: &Value) -> Result<Block, String> {
    let events = line["events"].as_array().ok_or("without events")?;
    Ok(Block {
        slot: number(line, "slot")?,
        fate: match line["kept"].as_bool().ok_or("without its fate")? {
            true => Fate::Kept,
            false => Fate::Dropped,
        },
        events: events.iter().map(event_of).collect::<Result<_, _>>()?,
    })
}

fn event_line(event: &Event) -> Value {
    let number = event.number;
    match &event.what {
        What::AccountChange { pubkey, owner } => json!({
            "number": number, "kind": "accountChange",
            "pubkey": pubkey.to_string(), "owner": owner.to_string(),
        }),
        What::Transaction {
            signature,
            signer,
            program,
            mentioned,
        } => json!({
            "number": number, "kind": "transaction", "signature": signature.to_string(),
            "signer": signer.to_string(), "program": program.to_string(),
            "mentioned": mentioned.to_string(),
        }),
        What::ProgramEvent {
            signature,
            signer,
            program,
        } => json!({
            "number": number, "kind": "programEvent", "signature": signature.to_string(),
            "signer": signer.to_string(), "program": program.to_string(),
        }),
    }
}

fn event_of(line: &Value) -> Result<Event, String> {
    let what = match text(line, "kind")? {
        "accountChange" => What::AccountChange {
            pubkey: value(line, "pubkey")?,
            owner: value(line, "owner")?,
        },
        "transaction" => What::Transaction {
            signature: value(line, "signature")?,
            signer: value(line, "signer")?,
            program: value(line, "program")?,
            mentioned: value(line, "mentioned")?,
        },
        "programEvent" => What::ProgramEvent {
            signature: value(line, "signature")?,
            signer: value(line, "signer")?,
            program: value(line, "program")?,
        },
        other => return Err(format!("an event of the kind {other}")),
    };
    Ok(Event {
        number: number(line, "number")?,
        what,
    })
}

fn arrival_of(line: &Value) -> Result<Arrival, String> {
    let header = |name: &str| line[name].as_str().map(str::to_owned);
    Ok(Arrival {
        webhook: text(line, "webhook")?.to_owned(),
        headers: Headers {
            id: header("id"),
            timestamp: header("timestamp"),
            signature: header("signature"),
        },
        body: text(line, "body")?.to_owned(),
        accepted: line["accepted"].as_bool().ok_or("without its answer")?,
        at: line["at"].as_i64().ok_or("without its time")?,
        clocks_off: number(line, "clocksOff")?,
    })
}

fn text<'a>(line: &'a Value, field: &str) -> Result<&'a str, String> {
    line[field].as_str().ok_or(format!("no text {field}"))
}

fn number(line: &Value, field: &str) -> Result<u64, String> {
    line[field].as_u64().ok_or(format!("no number {field}"))
}

fn value<T: FromStr>(line: &Value, field: &str) -> Result<T, String> {
    let text = text(line, field)?;
    let value = text.parse();
    value.map_err(|_| format!("{field} {text} is not understood"))
}

fn named<T>(line: &Value, field: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    let name = text(line, field)?;
    read(name).ok_or(format!("{field} {name} is not known"))
}

fn list<T>(line: &Value, field: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let values = line[field].as_array().ok_or(format!("no list {field}"))?;
    let values = values.iter().map(|each| each.as_str().and_then(&read));
    let values: Option<_> = values.collect();
    values.ok_or(format!("{field} are not all known"))
}

#[cfg(test)]
mod tests;
