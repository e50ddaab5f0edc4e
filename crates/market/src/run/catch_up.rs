//! Catching up: how far a stream that was opened must be before its slots are new enough to be shown (pure).
//!
//! A replay, and a stream that was read from while the chain was read, begin in the past. Where the present is, the node says.

/// What a stream lacks of the present, as it was when the stream was opened. What comes after that does not put it off: a node
/// that is always ahead is never reached.
#[derive(Debug)]
pub(super) struct CatchUp {
    /// Last slot that readers saw.
    shown: u64,
    /// Slot that the node was in.
    node: u64,
    /// Highest slot that the stream has completed or given up, of whichever fork: the node may have been on one that loses.
    reached: u64,
}

impl CatchUp {
    /// Readers saw `shown`, and the node is in this slot, if it says so.
    pub(super) fn to(shown: u64, node: Option<u64>) -> Self {
        Self {
            shown,
            node: node.unwrap_or(0),
            reached: 0,
        }
    }

    /// The node is in this slot now, if it says so.
    pub(super) fn aim_at(&mut self, node: Option<u64>) {
        self.node = self.node.max(node.unwrap_or(0));
    }

    /// The stream has completed this slot, or given it up.
    pub(super) fn reach(&mut self, slot: u64) {
        self.reached = self.reached.max(slot);
    }

    /// Whether `head` may not be shown yet. A node that takes back how far it was is believed, and one that says nothing any
    /// more is no measure: a wrong word of it does not keep the market away for ever.
    pub(super) fn lacks(&self, head: u64, node: Option<u64>) -> bool {
        head < self.shown || node.is_some_and(|now| self.reached < self.node.min(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_saw_and_where_the_node_was_are_reached_before_anything_is_shown() {
        let mut catch_up = CatchUp::to(100, Some(130));
        catch_up.reach(99);
        assert!(catch_up.lacks(99, None));
        assert!(!catch_up.lacks(100, None), "the node says nothing any more");
        catch_up.reach(129);
        assert!(catch_up.lacks(129, Some(135)));
        assert!(!catch_up.lacks(129, Some(120)), "the node took it back");
        catch_up.reach(130);
        assert!(
            !catch_up.lacks(130, Some(200)),
            "a node that is ahead for good"
        );
        assert!(
            !catch_up.lacks(128, Some(200)),
            "slot 130 is of a losing fork"
        );
    }

    #[test]
    fn a_node_that_says_nothing_leaves_what_readers_saw() {
        let mut catch_up = CatchUp::to(100, None);
        assert!(!catch_up.lacks(100, Some(130)));
        catch_up.aim_at(Some(140));
        catch_up.aim_at(None);
        assert!(catch_up.lacks(100, Some(150)));
    }
}
