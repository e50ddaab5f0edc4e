//! Planted bugs: what a sender does wrong, each with the words by which the judge must name it.

use Commitment::{Finalized, Processed};
use DeliveryOrder::{PerKey, Strict};

use super::{super::super::verdict::tests::data, *};

/// A bug, and the webhook on which it shows.
pub(super) struct Planted {
    pub(super) name: &'static str,
    pub(super) commitment: Commitment,
    pub(super) order: DeliveryOrder,
    pub(super) plant: fn(&mut Sender),
    /// What a fault says.
    pub(super) found: &'static str,
}

const fn bug(name: &'static str, plant: fn(&mut Sender), found: &'static str) -> Planted {
    Planted {
        name,
        commitment: Commitment::Confirmed,
        order: DeliveryOrder::None,
        plant,
        found,
    }
}

impl Planted {
    const fn at(mut self, commitment: Commitment) -> Self {
        self.commitment = commitment;
        self
    }

    const fn in_order(mut self, order: DeliveryOrder) -> Self {
        self.order = order;
        self
    }
}

// A line for each, as in a table.
#[rustfmt::skip]
pub(super) const PLANTED: &[Planted] = &[
    // Loss.
    bug("a message is stored and never sent", |s| s.lose(7), "is lost"),
    bug("a message is not stored, and has no number", |s| s.lose_and_renumber(7..8), "is lost"),
    bug("the first message is not stored", |s| s.lose_and_renumber(1..2), "is lost"),
    bug("the last message is not stored", |s| s.lose(s.last()), "is lost"),
    bug("messages in a row are not stored at a take-over", |s| s.lose_and_renumber(20..31), "is lost").at(Finalized),
    bug("a refused message counts as delivered", |s| s.at(7).accepted = false, "was given up"),
    bug("what happened is not emitted at processed", |s| s.lose_kept(), "is lost").at(Processed),
    // Numbers.
    bug("a hole in the numbers", |s| s.renumber_from(9, 1), "where 9 should be"),
    bug("the numbers begin at zero", |s| s.renumber_from(1, -1), "number 0 where 1 should be"),
    bug("two messages have one number", |s| s.renumber_from(9, -1), "number 8 where 9 should be"),
    bug("two messages have each other's numbers", |s| s.exchange_numbers(), "is of slot"),
    // Ids.
    bug("an event is stored under another id after a crash", |s| s.tell_again(), "was not retracted between"),
    bug("a repetition is rendered anew", |s| s.alter_repetition(), "two bodies"),
    bug("two messages have one id", |s| s.collide(), "two bodies"),
    bug("a message comes without its id", |s| s.at(7).without = vec!["id"], "without an id"),
    // Signatures.
    bug("another webhook's secret signs", |s| s.at(7).own_secret = false, "by another secret"),
    bug("a body is changed after it was signed", |s| s.at(7).altered = Some("{}".to_owned()), "something else was signed"),
    bug("the timestamp is not the signed one", |s| s.at(7).shifted = true, "something else was signed"),
    bug("a message comes without a signature", |s| s.at(7).without = vec!["signature"], "no signature"),
    bug("a message comes without a timestamp", |s| s.at(7).without = vec!["timestamp"], "no timestamp"),
    bug("a retry has the first attempt's signature", |s| s.at(7).age = 3_600, "the timestamp is 3600 s off"),
    // Destinations.
    bug("a message goes to an unknown endpoint", |s| s.at(7).webhook = "wh_other".to_owned(), "no script made"),
    bug("a message names another webhook", |s| s.set(7, "webhookId", json!("wh_other")), "meant for another webhook"),
    bug("a message names another commitment", |s| s.set(7, "commitment", json!("processed")), "meant for another webhook"),
    // Contents.
    bug("a dropped block is emitted at confirmed", |s| s.tell_of(Fate::Dropped, true), "not part of the chain"),
    bug("a filter lets through what was not asked for", |s| s.tell_of(Fate::Kept, false), "not asked for"),
    bug("an event is emitted in another slot", |s| s.set(7, "slot", json!(1)), "of another slot"),
    bug("an event names another owner", |s| s.mix_up(), "nothing of this happened"),
    bug("something is emitted that never happened", |s| s.invent(), "nothing of this happened"),
    bug("a gap is reported where there is none", |s| s.set(7, "type", json!("gap")), "nothing that should be emitted"),
    bug("a message has no number", |s| s.set(7, "sequence", Value::Null), "without a sequence"),
    bug("a body is cut", |s| s.at(7).body.truncate(20), "is no JSON"),
    // Retractions.
    bug("a dropped block is not retracted", |s| s.forget_retraction(), "never retracted").at(Processed),
    bug("a kept block is retracted", |s| s.retract_kept(1), "retracted for nothing").at(Processed),
    bug("a message is retracted twice", |s| s.retract_kept(2), "was retracted before").at(Processed),
    bug("a retraction names another number", |s| s.retract_wrongly("sequence", json!(1_000_000)), "which was not emitted").at(Processed),
    bug("a retraction names another message", |s| s.retract_wrongly("messageId", json!("msg_0")), "which was not emitted").at(Processed),
    bug("an event is reinstated that was not retracted", |s| s.tell_again(), "was not retracted between").at(Processed),
    // Order.
    bug("a message is sent before the one before is accepted", |s| s.overtake(), "before number 1 was accepted").in_order(Strict),
    bug("a key's message is sent before its last is accepted", |s| s.overtake(), "before number 1 was accepted").in_order(PerKey),
    bug("slots are emitted out of order", |s| s.exchange_numbers(), "is of slot").at(Finalized),
];

impl Sender {
    fn last(&self) -> u64 {
        self.number(self.drafts.len() - 1)
    }

    fn body(&self, at: usize) -> Value {
        serde_json::from_str(&self.drafts[at].body).expect("JSON")
    }

    fn number(&self, at: usize) -> u64 {
        self.body(at)["sequence"].as_u64().expect("a number")
    }

    /// The places of the arrivals of a message.
    fn places(&self, number: u64) -> Vec<usize> {
        let places = 0..self.drafts.len();
        places.filter(|at| self.number(*at) == number).collect()
    }

    /// The one arrival of a message that comes once.
    fn at(&mut self, number: u64) -> &mut Draft {
        let places = self.places(number);
        assert_eq!(places.len(), 1, "it comes once");
        &mut self.drafts[places[0]]
    }

    fn set(&mut self, number: u64, field: &str, value: Value) {
        for at in self.places(number) {
            self.write(at, field, value.clone());
        }
    }

    fn write(&mut self, at: usize, field: &str, value: Value) {
        let mut body = self.body(at);
        body[field] = value;
        self.drafts[at].body = body.to_string();
    }

    fn lose(&mut self, number: u64) {
        let lost = self.places(number);
        self.drafts.drain(lost[0]..=lost[lost.len() - 1]);
    }

    fn lose_and_renumber(&mut self, numbers: std::ops::Range<u64>) {
        let count = i64::try_from(numbers.end - numbers.start).expect("small");
        let next = numbers.end;
        numbers.for_each(|number| self.lose(number));
        self.renumber_from(next, -count);
    }

    fn renumber_from(&mut self, first: u64, by: i64) {
        for at in 0..self.drafts.len() {
            let number = self.number(at);
            if number >= first {
                self.write(at, "sequence", number.checked_add_signed(by).into());
            }
        }
    }

    fn lose_kept(&mut self) {
        self.lose(self.number(self.last_emission()));
    }

    /// Of two messages that follow one another and are of two slots.
    fn exchange_numbers(&mut self) {
        let slot = |number| self.body(self.places(number)[0])["slot"].clone();
        let first = (1..self.last()).find(|number| slot(*number) != slot(number + 1));
        let first = first.expect("there are several slots");
        let (ones, others) = (self.places(first), self.places(first + 1));
        for (places, number) in [(ones, first + 1), (others, first)] {
            for at in places {
                self.write(at, "sequence", number.into());
            }
        }
    }

    /// Sends one more message, like this one but for a change, under the next number and another id.
    fn add(&mut self, like: usize, change: impl FnOnce(&mut Value)) {
        let mut draft = self.drafts[like].clone();
        let mut body = self.body(like);
        let number = self.last() + 1;
        body["sequence"] = number.into();
        change(&mut body);
        draft.body = body.to_string();
        draft.id = format!("msg_more_{number}");
        draft.accepted = true;
        self.drafts.push(draft);
    }

    /// Of an event of the last kept block.
    fn tell_again(&mut self) {
        self.add(self.last_emission(), |_| {});
    }

    /// The place of the last message about a kept block.
    fn last_emission(&self) -> usize {
        let blocks = self.history.blocks.iter();
        let kept = blocks.filter(|block| block.fate == Fate::Kept);
        let kept: Vec<u64> = kept.map(|block| block.slot).collect();
        let place = (0..self.drafts.len()).rev().find(|at| {
            let body = self.body(*at);
            body["type"] != "reverted" && kept.contains(&body["slot"].as_u64().expect("a number"))
        });
        place.expect("some are kept")
    }

    fn alter_repetition(&mut self) {
        let refused = self.drafts.iter().position(|draft| !draft.accepted);
        self.write(refused.expect("some are refused") + 1, "sent", 2.into());
    }

    fn collide(&mut self) {
        self.drafts[4].id = self.drafts[3].id.clone();
    }

    /// Sends an event of a block of this fate that the webhook asked for, or did not.
    fn tell_of(&mut self, fate: Fate, wanted: bool) {
        let subscriber = &self.history.webhooks[0].0.subscriber;
        let blocks = self
            .history
            .blocks
            .iter()
            .filter(|block| block.fate == fate);
        let mut events =
            blocks.flat_map(|block| block.events.iter().map(|each| (block.slot, *each)));
        let found = events.find(|(_, event)| subscriber.wants(event) == wanted);
        let (slot, event) = found.expect("there is one");
        self.add(self.drafts.len() - 1, |body| {
            body["slot"] = slot.into();
            body["type"] = event.what.kind().name().into();
            body["data"] = data(&event);
        });
    }

    fn of_kind(&self, kind: &str) -> usize {
        let place = (0..self.drafts.len()).find(|at| self.body(*at)["type"] == kind);
        place.expect("there are all kinds")
    }

    fn mix_up(&mut self) {
        let number = self.number(self.of_kind(EventKind::AccountChange.name()));
        let mut data = self.body(self.places(number)[0])["data"].clone();
        data["owner"] = data["pubkey"].clone();
        self.set(number, "data", data);
    }

    fn invent(&mut self) {
        let at = self.of_kind(EventKind::AccountChange.name());
        // The number u64::MAX, in base64.
        self.add(at, |body| body["data"]["data"] = "//////////8=".into());
    }

    fn forget_retraction(&mut self) {
        let number = self.number(self.of_kind("reverted"));
        self.lose_and_renumber(number..number + 1);
    }

    fn retract_kept(&mut self, times: u32) {
        let at = self.last_emission();
        let (id, number) = (self.drafts[at].id.clone(), self.number(at));
        for _ in 0..times {
            self.add(at, |body| {
                body["type"] = "reverted".into();
                body["data"] = json!({ "messageId": id, "sequence": number });
            });
        }
    }

    fn retract_wrongly(&mut self, field: &str, value: Value) {
        let number = self.number(self.of_kind("reverted"));
        let mut data = self.body(self.places(number)[0])["data"].clone();
        data[field] = value;
        self.set(number, "data", data);
    }

    /// The first message is refused, all others are accepted, and then the first.
    fn overtake(&mut self) {
        let again = self.drafts[0].clone();
        self.drafts[0].accepted = false;
        self.drafts.push(again);
    }
}
