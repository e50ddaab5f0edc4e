//! Program reader: finds by RPC which accounts the watched programs own, once for each program and process.
//!
//! The stream shows an account only when it is written. One that was there before, and is closed by its next write, would be
//! nobody's.

use std::{collections::HashSet, pin::Pin};

use sluice_store::Revision;
use solana_pubkey::Pubkey;

use crate::{
    events::subscription_index::Subscriptions,
    rpc::{Node, NodeError},
    slots::known_accounts::MAX_KNOWN_ACCOUNTS,
};

/// The accounts of a program in a slot.
#[derive(Debug)]
pub(super) struct ProgramAccounts {
    pub(super) program: Pubkey,
    pub(super) slot: u64,
    pub(super) accounts: Vec<Pubkey>,
}

type Reading = Pin<Box<dyn Future<Output = Result<ProgramAccounts, NodeError>> + Send>>;

/// Reads one program after the other.
pub(super) struct ProgramReader {
    /// `None` where there is no node to be asked.
    node: Option<Node>,
    /// Programs that were read, or are refused.
    read: HashSet<Pubkey>,
    /// Those to be read.
    waiting: Vec<Pubkey>,
    /// The revision of which they are.
    revision: Option<Revision>,
    reading: Option<(Pubkey, Reading)>,
}

impl ProgramReader {
    /// A reader that has read nothing yet.
    pub(super) fn new(node: Option<Node>) -> Self {
        Self {
            node,
            read: HashSet::new(),
            waiting: Vec::new(),
            revision: None,
            reading: None,
        }
    }

    /// Gives up what is under way with an earlier session, which may have missed what was closed meanwhile.
    pub(super) fn begin_session(&mut self) {
        self.revision = None;
        self.reading = None;
    }

    /// Begins to read a program that is watched and was not read. `slot` is the last one that was emitted with everything that
    /// the filter selects, `None` before. Returns whether a program is being read.
    pub(super) fn advance(&mut self, served: &Subscriptions, slot: Option<u64>) -> bool {
        let (Some(node), Some(min_slot)) = (&self.node, slot) else {
            return false;
        };
        if self.revision != Some(served.revision()) {
            self.revision = Some(served.revision());
            let unread = served.watched_owners().copied();
            let unread = unread.filter(|program| !self.read.contains(program));
            self.waiting = unread.collect::<HashSet<_>>().into_iter().collect();
        }
        if self.reading.is_none()
            && let Some(program) = self.waiting.pop()
        {
            let node = node.clone();
            let reading = async move {
                let (slot, accounts) = node.program_accounts(&program, min_slot).await?;
                Ok(ProgramAccounts {
                    program,
                    slot,
                    accounts,
                })
            };
            self.reading = Some((program, Box::pin(reading)));
        }
        self.reading.is_some()
    }

    /// What was read; never while nothing is. Cancel-safe.
    pub(super) async fn ended(&mut self) -> Option<ProgramAccounts> {
        let Some((program, reading)) = &mut self.reading else {
            return std::future::pending().await;
        };
        let (program, came) = (*program, reading.await);
        self.reading = None;
        self.read.insert(program);
        match came {
            Ok(mut read) => {
                if read.accounts.len() > MAX_KNOWN_ACCOUNTS {
                    let count = read.accounts.len();
                    tracing::warn!(%program, count, MAX_KNOWN_ACCOUNTS, "a program has more accounts than are known at once");
                    read.accounts.truncate(MAX_KNOWN_ACCOUNTS);
                }
                Some(read)
            }
            Err(error) => {
                tracing::warn!(
                    %program, %error,
                    "the accounts of a watched program could not be read: that one is closed is noticed once it was written"
                );
                None
            }
        }
    }
}
