//! Race: which server completed each slot first, and by how much the others followed (pure).

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use crate::slot_assembly::MAX_SLOTS;

/// The slots that were completed last.
#[derive(Debug, Default)]
pub(crate) struct Race {
    slots: BTreeMap<u64, Finish>,
}

/// Who has completed a slot.
#[derive(Debug)]
struct Finish {
    first_at: Instant,
    servers: Vec<usize>,
}

impl Race {
    /// A server has completed a slot. Returns by how much it followed the first one, where it is another one and has not
    /// completed the slot before.
    pub(crate) fn completed(&mut self, server: usize, slot: u64, now: Instant) -> Option<Duration> {
        let finish = self.slots.entry(slot).or_insert_with(|| Finish {
            first_at: now,
            servers: Vec::new(),
        });
        let is_first = finish.servers.is_empty();
        let is_new = !finish.servers.contains(&server);
        let behind = now.saturating_duration_since(finish.first_at);
        if is_new {
            finish.servers.push(server);
        }
        while self.slots.len() > MAX_SLOTS {
            self.slots.pop_first();
        }
        (is_new && !is_first).then_some(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_follows_the_first_one_once() {
        let mut race = Race::default();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(race.completed(1, 7, at(0)), None, "it is the first");
        assert_eq!(race.completed(1, 7, at(1)), None, "it replays");
        let behind = Some(Duration::from_millis(5));
        assert_eq!(race.completed(0, 7, at(5)), behind);
        assert_eq!(race.completed(0, 7, at(9)), None, "it replays");
        assert_eq!(race.completed(0, 8, at(9)), None, "another slot");
    }
}
