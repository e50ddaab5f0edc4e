//! Tests of the judge by planted bugs: each of them is written into a history, found there and named.

mod planted;

use serde_json::{Value, json};
use sluice_store::{Commitment, DeliveryOrder, Secret};
use standardwebhooks::Webhook as Signer;

use self::planted::{PLANTED, Planted};
use super::{
    super::verdict::tests::{promised, told},
    *,
};

/// When the first message is signed, unix seconds.
const BEGUN: i64 = 1_800_000_000;

/// Of so many messages one is refused once and comes again.
const REFUSED_ONE_IN: usize = 10;

/// A request before it is signed.
#[derive(Clone, Debug)]
struct Draft {
    /// To whose receiver.
    webhook: String,
    id: String,
    /// What is signed.
    body: String,
    /// What is sent instead of that.
    altered: Option<String>,
    /// Whether the webhook's own secret signs.
    own_secret: bool,
    /// Headers that are left out.
    without: Vec<&'static str>,
    /// By how many seconds the signature is older than the arrival.
    age: i64,
    /// Whether the timestamp is another than the one that was signed.
    shifted: bool,
    accepted: bool,
}

/// A sender without faults, whose requests a bug changes before they are written down.
struct Sender {
    history: History,
    drafts: Vec<Draft>,
}

impl Sender {
    /// Everything that is owed comes, in order; some of it is refused once.
    fn new(commitment: Commitment, order: DeliveryOrder) -> Self {
        let (promise, blocks) = promised(commitment, order);
        let mut drafts = Vec::new();
        for (body, number) in told(&promise, &blocks).into_iter().zip(1..) {
            let draft = Draft {
                webhook: promise.webhook.clone(),
                id: format!("msg_{number:06}"),
                body: body.to_string(),
                altered: None,
                own_secret: true,
                without: Vec::new(),
                age: 1,
                shifted: false,
                accepted: true,
            };
            if number % REFUSED_ONE_IN == 0 {
                drafts.push(Draft {
                    accepted: false,
                    ..draft.clone()
                });
            }
            drafts.push(draft);
        }
        let secret = Secret::from_random([1; 32]).expose().to_owned();
        let history = History {
            webhooks: vec![(promise, secret)],
            blocks,
            arrivals: Vec::new(),
        };
        Self { history, drafts }
    }

    /// Signs what is sent, writes it down, and judges what was written.
    fn judged(mut self) -> Judgement {
        let own = Signer::new(&self.history.webhooks[0].1).expect("a secret");
        let other = Secret::from_random([2; 32]);
        let other = Signer::new(other.expose()).expect("a secret");
        for (draft, at) in self.drafts.into_iter().zip(BEGUN..) {
            let signer = if draft.own_secret { &own } else { &other };
            let signed = at - draft.age;
            let signature = signer.sign(&draft.id, signed, draft.body.as_bytes());
            let timestamp = signed + i64::from(draft.shifted);
            let header =
                |name: &str, value: String| (!draft.without.contains(&name)).then_some(value);
            let headers = Headers {
                id: header("id", draft.id),
                timestamp: header("timestamp", timestamp.to_string()),
                signature: header("signature", signature.expect("signs")),
            };
            self.history.arrivals.push(Arrival {
                webhook: draft.webhook,
                headers,
                body: draft.altered.unwrap_or(draft.body),
                accepted: draft.accepted,
                at,
                clocks_off: 0,
            });
        }
        let lines: Vec<String> = self.history.lines().collect();
        let read = History::parse(&lines.join("\n")).expect("what was written is understood");
        assert_eq!(read.arrivals, self.history.arrivals);
        read.judge().expect("judges")
    }
}

#[test]
fn a_history_without_a_bug_is_clean() {
    for commitment in Commitment::ALL {
        for order in DeliveryOrder::ALL {
            let judged = Sender::new(commitment, order).judged();
            assert_eq!(judged.all_faults().next(), None, "{commitment} {order:?}");
            let finding = &judged.findings[0];
            assert!(finding.expected > 50 && finding.lost == 0 && finding.repeated > 5);
        }
    }
}

#[test]
fn each_planted_bug_is_found_and_named() {
    assert!(PLANTED.len() >= 30);
    for Planted {
        name,
        commitment,
        order,
        plant,
        found,
    } in PLANTED
    {
        let mut sender = Sender::new(*commitment, *order);
        plant(&mut sender);
        let judged = sender.judged();
        assert!(
            judged.all_faults().any(|fault| fault.contains(found)),
            "{name}: {:?}",
            judged.all_faults().take(5).collect::<Vec<_>>()
        );
    }
}

#[test]
fn no_two_planted_bugs_have_one_name() {
    let names: std::collections::BTreeSet<_> = PLANTED.iter().map(|bug| bug.name).collect();
    assert_eq!(names.len(), PLANTED.len());
}

#[test]
fn a_line_that_is_not_understood_is_named() {
    for (line, fault) in [
        ("no JSON", "line 2: expected"),
        ("{}", "line 2: neither a webhook"),
        (
            r#"{"block":{"slot":1,"kept":true}}"#,
            "line 2: without events",
        ),
        (r#"{"arrival":{"webhook":"wh_1"}}"#, "line 2: no text body"),
    ] {
        let text = format!("{{\"block\":{{\"slot\":1,\"kept\":true,\"events\":[]}}}}\n{line}");
        let refused = History::parse(&text).expect_err("refused");
        assert!(refused.starts_with(fault), "{refused}");
    }
}
