//! Status: whether this process is the leader, and whether its stream can be relied on.

mod standstill;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sluice_store::Checkpoints;

pub use self::standstill::Stands;
use self::standstill::Standstill;

/// Longest time without a slot for an indexer that works, seconds of wall time: many slots, however short they are.
/// Without one for so long the stream stands still, or the chain does.
pub const MAX_SLOT_AGE: Duration = Duration::from_secs(10);

/// Shared by the tasks. Locks are held for a few instructions and never across an await.
#[derive(Clone, Debug)]
pub struct Status {
    stream: Arc<Mutex<StreamStatus>>,
}

#[derive(Debug)]
struct StreamStatus {
    /// `None` once connected.
    fault: Option<String>,
    connected: bool,
    /// Whether this process is the leader, once that is known.
    leader: Option<bool>,
    last_slot: Option<(u64, Instant)>,
    standstill: Standstill,
}

impl Status {
    /// That of a process which has just begun. `longest_standstill` is the wall time for which slots may come of which nothing
    /// is stored.
    #[must_use]
    pub fn new(longest_standstill: Duration) -> Self {
        let stream = StreamStatus {
            fault: None,
            connected: false,
            leader: None,
            last_slot: None,
            standstill: Standstill::new(longest_standstill),
        };
        Self {
            stream: Arc::new(Mutex::new(stream)),
        }
    }

    /// Shows that this process is the leader, or a standby; `None` while that is not known.
    pub fn leads(&self, leads: Option<bool>) {
        self.stream.lock().leader = leads;
    }

    /// Whether this process is the leader; `None` while that is not known.
    #[must_use]
    pub fn is_leader(&self) -> Option<bool> {
        self.stream.lock().leader
    }

    /// Whether this process stands by while another one is the leader.
    #[must_use]
    pub fn stands_by(&self) -> bool {
        self.stream.lock().leader == Some(false)
    }

    /// The stream is open.
    pub fn connected(&self) {
        let mut stream = self.stream.lock();
        stream.connected = true;
        stream.fault = None;
    }

    /// The stream is not usable, for this reason.
    pub fn disconnected(&self, reason: String) {
        let mut stream = self.stream.lock();
        stream.connected = false;
        stream.fault = Some(reason);
    }

    /// Whether the stream is open.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.stream.lock().connected
    }

    /// A slot was seen at `now`.
    pub fn saw_slot(&self, slot: u64, now: Instant) {
        let mut stream = self.stream.lock();
        let newest = stream
            .last_slot
            .map_or(slot, |(newest, _)| newest.max(slot));
        stream.last_slot = Some((newest, now));
    }

    /// These checkpoints are stored; and whether a webhook waits for finality.
    pub fn stored(&self, checkpoints: &Checkpoints, is_finality_wanted: bool) {
        let mut stream = self.stream.lock();
        stream.standstill.stored(checkpoints, is_finality_wanted);
    }

    /// Takes note of the newest slot that a server has brought, which may be held back. Returns what has stood still at `now` for
    /// so long that the stream is to be opened anew.
    pub fn renewal(&self, newest_brought: Option<u64>, now: Instant) -> Option<Stands> {
        let mut stream = self.stream.lock();
        let newest_seen = stream.last_slot.map(|(slot, _)| slot);
        if let Some(newest) = newest_brought.max(newest_seen) {
            stream.standstill.came(newest, now);
        }
        stream.standstill.renewal(now)
    }

    /// The newest slot seen.
    #[must_use]
    pub fn last_slot(&self) -> Option<u64> {
        self.stream.lock().last_slot.map(|(slot, _)| slot)
    }

    /// How long it is since a slot was seen; `None` while none was.
    #[must_use]
    pub fn slot_age(&self, now: Instant) -> Option<Duration> {
        let (_, seen) = self.stream.lock().last_slot?;
        Some(now.saturating_duration_since(seen))
    }

    /// Why the stream cannot be relied on at `now`; `None` when it can, or when another process sees to it.
    #[must_use]
    pub fn stream_fault(&self, now: Instant) -> Option<String> {
        let stream = self.stream.lock();
        if stream.leader == Some(false) {
            return None;
        }
        if let Some(fault) = &stream.fault {
            return Some(fault.clone());
        }
        if !stream.connected {
            return Some("the stream is not connected yet".to_owned());
        }
        if let Some(stands) = stream.standstill.stands(now) {
            return Some(stands.to_string());
        }
        match stream.last_slot {
            None => Some("the stream has not shown a slot yet".to_owned()),
            Some((slot, seen)) if now.saturating_duration_since(seen) > MAX_SLOT_AGE => {
                Some(format!(
                    "the stream has shown no slot after {slot} for {} s",
                    MAX_SLOT_AGE.as_secs()
                ))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_well_only_while_connected_and_moving() {
        let (status, now) = (Status::new(Duration::from_secs(60)), Instant::now());
        assert!(
            status
                .stream_fault(now)
                .is_some_and(|fault| fault.contains("not connected yet"))
        );
        status.connected();
        assert!(
            status
                .stream_fault(now)
                .is_some_and(|fault| fault.contains("not shown a slot"))
        );
        status.saw_slot(7, now);
        status.saw_slot(6, now);
        assert_eq!(status.last_slot(), Some(7));
        assert_eq!(status.slot_age(now + MAX_SLOT_AGE), Some(MAX_SLOT_AGE));
        assert_eq!(status.stream_fault(now + MAX_SLOT_AGE), None);
        let late = now + MAX_SLOT_AGE + Duration::from_millis(1);
        assert!(
            status
                .stream_fault(late)
                .is_some_and(|fault| fault.contains("after 7"))
        );
        status.disconnected("gone".to_owned());
        assert_eq!(status.stream_fault(now).as_deref(), Some("gone"));
        status.leads(Some(false));
        assert_eq!(status.stream_fault(now), None, "another process sees to it");
        status.leads(Some(true));
        assert!(!status.stands_by() && status.stream_fault(now).is_some());
    }

    #[test]
    fn slots_that_a_server_brings_and_that_are_held_back_make_a_leader_not_ready() {
        let longest = Duration::from_secs(60);
        let (status, mut now) = (Status::new(longest), Instant::now());
        status.leads(Some(true));
        status.connected();
        status.saw_slot(7, now);
        let checkpoint = Checkpoints::at(sluice_store::Commitment::Confirmed, 7);
        status.stored(&checkpoint, false);
        let begun = now;
        for slot in 8.. {
            now += Duration::from_secs(1);
            if status.renewal(Some(slot), now).is_some() {
                break;
            }
            let stood = now.saturating_duration_since(begun) > longest;
            let told = status.stream_fault(now);
            let is_told = |told: &String| told.contains("none after 7 was stored at confirmed");
            assert_eq!(told.as_ref().is_some_and(is_told), stood, "{told:?}");
        }
        assert_eq!(now, begun + Duration::from_secs(121));
        status.leads(Some(false));
        assert_eq!(status.stream_fault(now), None, "another process sees to it");
    }
}
