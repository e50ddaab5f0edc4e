//! Rooted blocks: hash of each finalized slot, as it was given out and as each source reports it (pure).
//!
//! Two servers of one cluster that root different blocks of a slot cannot both be right. Nothing is decided here: what was given
//! out and finalized stays, and the one that says otherwise is named.

use std::collections::BTreeMap;

use super::{Finding, MAX_SLOTS};

/// The blocks of the slots that were finalized last.
#[derive(Debug, Default)]
pub(super) struct RootedBlocks {
    slots: BTreeMap<u64, RootedSlot>,
}

#[derive(Debug, Default)]
struct RootedSlot {
    /// Hash of the block that was given out, once it is finalized.
    given: Option<String>,
    /// By source.
    claims: BTreeMap<usize, Claim>,
}

/// What a source says of a slot.
#[derive(Debug, Default)]
struct Claim {
    /// Hash of the block that it delivered last.
    blockhash: String,
    is_finalized: bool,
    is_reported: bool,
}

impl RootedBlocks {
    /// A source delivered a block.
    pub(super) fn delivered(&mut self, source: usize, slot: u64, blockhash: &str) {
        let claims = &mut self.slots.entry(slot).or_default().claims;
        let claim = claims.entry(source).or_default();
        if claim.blockhash != blockhash {
            *claim = Claim {
                blockhash: blockhash.to_owned(),
                ..Claim::default()
            };
        }
        while self.slots.len() > MAX_SLOTS {
            self.slots.pop_first();
        }
    }

    /// A source said that a slot is finalized. Returns whether that contradicts what was given out.
    pub(super) fn finalized(&mut self, source: usize, slot: u64) -> Option<Finding> {
        let rooted = self.slots.get_mut(&slot)?;
        let claim = rooted.claims.get_mut(&source)?;
        claim.is_finalized = true;
        contradiction(slot, rooted.given.as_deref()?, source, claim)
    }

    /// The block that was given out of a slot is finalized. Returns which sources say otherwise.
    pub(super) fn given(&mut self, slot: u64, blockhash: &str) -> Vec<Finding> {
        let rooted = self.slots.entry(slot).or_default();
        rooted.given = Some(blockhash.to_owned());
        let claims = rooted.claims.iter_mut();
        claims
            .filter_map(|(source, claim)| contradiction(slot, blockhash, *source, claim))
            .collect()
    }

    /// Whether the block that was given out of a slot is finalized.
    pub(super) fn is_rooted(&self, slot: u64) -> bool {
        let rooted = self.slots.get(&slot);
        rooted.is_some_and(|rooted| rooted.given.is_some())
    }
}

fn contradiction(slot: u64, given: &str, source: usize, claim: &mut Claim) -> Option<Finding> {
    let contradicts = claim.is_finalized && !claim.is_reported && claim.blockhash != given;
    claim.is_reported |= contradicts;
    contradicts.then(|| Finding::Contradicted {
        source,
        slot,
        given: given.to_owned(),
        claimed: claim.blockhash.clone(),
    })
}
