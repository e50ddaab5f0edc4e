//! Connection to the server model: what arrives of the ring and of the replays that its requests ask for (pure).

use std::collections::VecDeque;

use super::{Numbered, Random, VERSIONS_OF_A_SERVER, Validator};
use crate::{
    generation::Generation,
    slot_assembly::SentRequest,
    update::{Body, Update},
};

/// One connection.
pub(in super::super) struct Connection {
    /// Position in the ring.
    at: usize,
    pending: Option<SentRequest>,
    in_force: Option<SentRequest>,
    outgoing: VecDeque<Update>,
    /// Whether `from_slot` of later requests is ignored.
    ignores_later: bool,
    /// Each server numbers writes in its own way.
    first_version: u64,
}

impl Connection {
    pub(in super::super) fn open(validator: &Validator, ignores_later: bool, server: u64) -> Self {
        Self {
            at: validator.ring.len(),
            pending: None,
            in_force: None,
            outgoing: VecDeque::new(),
            ignores_later,
            first_version: server * VERSIONS_OF_A_SERVER,
        }
    }

    pub(in super::super) fn request(&mut self, request: SentRequest) {
        self.pending = Some(request);
    }

    /// The server does something for this connection; returns what arrives, if anything.
    pub(in super::super) fn step(
        &mut self,
        validator: &Validator,
        random: &mut Random,
    ) -> Option<Update> {
        if self.pending.is_some() && random.one_in(4) {
            self.apply(validator);
        }
        let update = match self.outgoing.pop_front() {
            Some(update) => Some(update),
            None => {
                let numbered = validator.ring.get(self.at)?.clone();
                self.at += 1;
                Some(named(self.in_force?, numbered))
            }
        };
        update.map(|mut update| {
            if let Body::Account(account) = &mut update.body {
                account.write_version += self.first_version;
            }
            update
        })
    }

    fn apply(&mut self, validator: &Validator) {
        let Some(request) = self.pending.take() else {
            return;
        };
        let is_later = self.in_force.is_some();
        self.in_force = Some(request);
        let Some(from) = request
            .from_slot
            .filter(|_| !(is_later && self.ignores_later))
        else {
            return;
        };
        for ((_, id), block) in validator.blocks.range((from, None)..) {
            let bodies = block
                .content
                .iter()
                .chain([&block.meta])
                .chain(&block.statuses);
            self.outgoing
                .extend(bodies.map(|body| named(request, (*id, body.clone()))));
        }
    }

    /// Whether everything that happened has been delivered.
    pub(in super::super) fn is_up_to_date(&self, validator: &Validator) -> bool {
        self.outgoing.is_empty() && self.pending.is_none() && self.at == validator.ring.len()
    }
}

fn named(request: SentRequest, (bank_id, body): Numbered) -> Update {
    Update {
        filters: vec![Generation(request.generation.0).name("filter")],
        created_at: None,
        bank_id,
        body,
    }
}
