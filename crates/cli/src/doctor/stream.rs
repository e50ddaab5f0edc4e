//! Check of a Yellowstone server: that it streams, how far it is, how far back it replays, how far away it is, and what it takes.

use std::time::Duration;

use sluice_config::{GeyserConfig, GeyserEndpoint};
use sluice_geyser::{Body, Endpoint, Request, ServerInfo, Stream, StreamError};
use tokio::time::{Instant, timeout};

use super::{report::Finding, stream_limits};

/// Time in which a slot must have come. Chains make two to five a second.
const FIRST_SLOT: Duration = Duration::from_secs(10);

/// Slots by which a stream, or another node, may be behind the node without a word: they were asked one after the other.
pub const BEHIND_SLOTS: u64 = 64;

/// Slots that a replay should reach back to, so that what was finalized last is in it.
const REPLAYED_SLOTS: u64 = 64;

/// Slots that pass while the time of one is taken.
const TIMED_SLOTS: u64 = 4;

/// How long that may take: three slots of the slowest chain fit.
const TIMING: Duration = Duration::from_secs(3);

/// How far a stream is, and what the chain makes of time.
struct Seen {
    /// The newest slot that it names.
    slot: u64,
    /// What a slot takes, where some have passed.
    slot_time: Option<Duration>,
}

/// What was found of a server, each under its subject. `node_slot` is the slot of the RPC node.
pub async fn check(
    endpoint: &GeyserEndpoint,
    config: &GeyserConfig,
    node_slot: Option<u64>,
) -> Vec<(String, Finding)> {
    let endpoint = Endpoint {
        url: endpoint.url.clone(),
        x_token: endpoint.x_token.clone(),
    };
    let name = endpoint.name();
    let asking = async {
        let seen = slots_of(&endpoint).await?;
        Ok::<_, StreamError>((seen, ServerInfo::read(&endpoint).await?))
    };
    let stream = format!("stream {name}");
    match asking.await {
        Ok((seen, info)) => {
            let limits = stream_limits::check(&endpoint, config).await;
            let limits = limits.map(|finding| (format!("limits of stream {name}"), finding));
            let found = [
                (stream, judge(seen.slot, node_slot, &info)),
                (
                    format!("latency of stream {name}"),
                    latency(info.round_trip, seen.slot_time),
                ),
            ];
            found.into_iter().chain(limits).collect()
        }
        Err(error) => vec![(stream, failure(&error))],
    }
}

fn failure(error: &StreamError) -> Finding {
    let remedy = match error {
        StreamError::Refused(_) => "correct the server's url and x-token in [[geyser.endpoints]]",
        _ => "start the server, or correct its url in [[geyser.endpoints]]",
    };
    Finding::broken(error.to_string(), remedy)
}

/// What the time of a call and its answer says, beside what a slot takes: what comes from a server that is further away comes after
/// the next slot has begun.
fn latency(round_trip: Duration, slot_time: Option<Duration>) -> Finding {
    let found = format!("answers in {} ms", round_trip.as_millis());
    let Some(slot_time) = slot_time else {
        return Finding::Well(format!(
            "{found}; too few slots came to know what one takes"
        ));
    };
    let slot_time_ms = slot_time.as_millis();
    if round_trip <= slot_time {
        return Finding::Well(format!("{found}, a slot takes {slot_time_ms} ms"));
    }
    Finding::doubtful(
        format!("{found}, more than a slot, which takes {slot_time_ms} ms"),
        "use a server nearer to this machine: quotes are older than the chain by that",
    )
}

/// Which slots the stream names.
async fn slots_of(endpoint: &Endpoint) -> Result<Seen, StreamError> {
    let request = Request {
        slots: Some("doctor".to_owned()),
        ..Request::default()
    };
    let mut stream = Stream::open(endpoint, request).await?;
    let first = timeout(FIRST_SLOT, slot_above(&mut stream, None)).await;
    let mut slot = first.unwrap_or(Err(StreamError::Stalled(FIRST_SLOT)))?;
    let mut slot_time = None;
    let timing = async {
        // The first slot was under way: the next one's beginning is where the time begins.
        let from = slot_above(&mut stream, Some(slot)).await?;
        slot = from;
        let begun = Instant::now();
        while slot < from + TIMED_SLOTS {
            slot = slot_above(&mut stream, Some(slot)).await?;
            let passed = u32::try_from(slot - from).unwrap_or(u32::MAX);
            slot_time = Some(begun.elapsed() / passed);
        }
        Ok::<_, StreamError>(())
    };
    if let Ok(timed) = timeout(TIMING, timing).await {
        timed?;
    }
    Ok(Seen { slot, slot_time })
}

/// The next slot that the stream names and that is higher than this one.
async fn slot_above(stream: &mut Stream, known: Option<u64>) -> Result<u64, StreamError> {
    loop {
        if let Body::Slot(named) = stream.next().await?.body
            && Some(named.slot) > known
        {
            return Ok(named.slot);
        }
    }
}

/// What a server's slot and words say.
fn judge(slot: u64, node_slot: Option<u64>, info: &ServerInfo) -> Finding {
    let behind = node_slot.unwrap_or(slot).saturating_sub(slot);
    if behind > BEHIND_SLOTS {
        return Finding::broken(
            format!("at slot {slot}, {behind} slots behind the RPC node"),
            "wait until it has caught up, and see that it is of the same cluster as chain.rpc-url",
        );
    }
    match info.first_available.map(|first| slot.saturating_sub(first)) {
        Some(replayed) if replayed >= REPLAYED_SLOTS => {
            Finding::Well(format!("slot {slot}, replays {replayed} slots"))
        }
        Some(replayed) => Finding::doubtful(
            format!("slot {slot}, replays {replayed} slots only"),
            "a young server has no more; else set its replay to some hundreds of slots: what a lost connection leaves out \
             is read by RPC",
        ),
        None => Finding::doubtful(
            format!("slot {slot}, and it does not say how far back it replays"),
            "without a replay, what a lost connection leaves out is read by RPC, and changes of accounts are lost",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(first_available: Option<u64>) -> ServerInfo {
        ServerInfo {
            version: None,
            first_available,
            round_trip: Duration::ZERO,
        }
    }

    #[test]
    fn a_server_is_near_that_answers_within_a_slot_whatever_that_takes() {
        let millis = Duration::from_millis;
        let near = latency(millis(240), Some(millis(400)));
        let words = "answers in 240 ms, a slot takes 400 ms";
        assert_eq!(near, Finding::Well(words.into()));
        let far = latency(millis(240), Some(millis(200)));
        assert!(matches!(far, Finding::Doubtful { .. }), "{far:?}");
        let unknown = latency(millis(240), None);
        assert!(matches!(unknown, Finding::Well(_)), "{unknown:?}");
    }

    #[test]
    fn a_server_is_well_that_is_in_time_and_replays() {
        let well = judge(1_000, Some(1_010), &info(Some(500)));
        assert_eq!(well, Finding::Well("slot 1000, replays 500 slots".into()));
    }

    #[test]
    fn a_server_behind_the_node_is_of_no_use_and_one_without_replay_of_less() {
        let late = judge(1_000, Some(1_065), &info(Some(500)));
        assert!(matches!(late, Finding::Broken { .. }), "{late:?}");
        for first in [None, Some(937)] {
            let short = judge(1_000, None, &info(first));
            assert!(matches!(short, Finding::Doubtful { .. }), "{short:?}");
        }
    }
}
