//! Server model: a random chain, and connections that deliver it as the reference server does (pure).
//!
//! It stands for the reference Yellowstone server at commitment processed, and is as mean: a connection joins the live ring with an
//! empty filter, a request takes effect late and only the newest of those that wait does, a replay contains blocks of which
//! the metadata was out at that moment, reduced to the last write of each account, and the ring behind it repeats some of
//! them. It is meaner where the reference happens to be kind: a connection may be far behind the ring. In one thing it is kinder:
//! without bank ids a block is replaced only when no connection is, since nothing tells the rest of the old block in the ring
//! from the new one in a replay. With bank ids several banks of a slot are written in turns, and a replay holds all of them.
//!
//! The kit's Yellowstone server is not used here: a unit test of this crate would meet it with a second copy of the crate's types.

mod connection;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sluice_chain_types::SlotStatus;
use solana_pubkey::Pubkey;
use solana_signature::Signature;

pub(super) use self::connection::Connection;
use crate::update::{AccountUpdate, BlockMeta, Body, SlotUpdate, TransactionUpdate};

/// Write versions that a server numbers writes with, from its own first one on.
pub(super) const VERSIONS_OF_A_SERVER: u64 = 1_000_000_000;

/// Random numbers from a seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(super) fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// What one bank wrote: the last version and value of each account, and its transactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BankTruth {
    pub(super) parent: u64,
    pub(super) last_writes: BTreeMap<Pubkey, u64>,
    pub(super) transactions: BTreeSet<Signature>,
}

#[derive(Debug, Clone)]
struct OpenBank {
    id: Option<u64>,
    slot: u64,
    hash: String,
    parent: u64,
    parent_hash: String,
    writes_left: u64,
    content: Vec<Body>,
}

/// A frozen block, as the server keeps it for replays.
#[derive(Debug, Clone)]
struct Block {
    content: Vec<Body>,
    meta: Body,
    statuses: Vec<Body>,
}

/// What is reported, with the bank that it is of where banks are numbered.
type Numbered = (Option<u64>, Body);

/// The validator, and what its plugin has sent.
#[derive(Clone)]
pub(super) struct Validator {
    /// In the hash of every block.
    pub(super) name: &'static str,
    ring: Vec<Numbered>,
    /// By slot and bank id.
    blocks: BTreeMap<(u64, Option<u64>), Block>,
    open: Vec<OpenBank>,
    /// Frozen banks that may be built on: slot and hash.
    tips: Vec<(u64, String)>,
    /// Statuses that are announced with a delay.
    delayed: VecDeque<Numbered>,
    next_slot: u64,
    next_version: u64,
    /// Every bank by its hash.
    pub(super) truth: BTreeMap<String, (u64, BankTruth)>,
    /// Hash of the parent of each.
    parents: BTreeMap<String, String>,
    /// Bank id of each, where banks are numbered.
    ids: BTreeMap<String, u64>,
    confirmed: (u64, String),
    finalized: u64,
    pub(super) forks: bool,
    /// Whether a block may be replaced now.
    pub(super) may_replace: bool,
    /// Whether banks are numbered, and several of a slot written in turns.
    pub(super) numbers_banks: bool,
    next_id: u64,
}

fn status(slot: u64, parent: Option<u64>, status: SlotStatus) -> Body {
    Body::Slot(SlotUpdate {
        slot,
        parent,
        status,
        dead_error: None,
    })
}

fn key(number: u64) -> Pubkey {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Pubkey::from(bytes)
}

impl Validator {
    pub(super) fn new(forks: bool) -> Self {
        let first = (99, "first".to_owned());
        Self {
            name: "",
            ring: Vec::new(),
            blocks: BTreeMap::new(),
            open: Vec::new(),
            tips: vec![first.clone()],
            delayed: VecDeque::new(),
            next_slot: 100,
            next_version: 1,
            truth: BTreeMap::new(),
            parents: BTreeMap::new(),
            ids: BTreeMap::new(),
            confirmed: first,
            finalized: 99,
            forks,
            may_replace: false,
            numbers_banks: false,
            next_id: 1,
        }
    }

    pub(super) const fn next_slot(&self) -> u64 {
        self.next_slot
    }

    /// Whether a fork holds a slot with this hash.
    fn descends(&self, hash: &str, ancestor: &str) -> bool {
        let mut at = hash.to_owned();
        loop {
            if at == ancestor {
                return true;
            }
            let Some(parent) = self.parent_hash(&at) else {
                return false;
            };
            at = parent;
        }
    }

    fn parent_hash(&self, hash: &str) -> Option<String> {
        self.parents.get(hash).cloned()
    }

    /// Announces what was delayed.
    pub(super) fn settle(&mut self) {
        while let Some(numbered) = self.delayed.pop_front() {
            self.announce(numbered);
        }
    }

    /// The chain that is confirmed, oldest slot first: slot and hash.
    pub(super) fn confirmed_chain(&self) -> Vec<(u64, String)> {
        let mut chain = Vec::new();
        let mut at = self.confirmed.1.clone();
        while let Some((slot, _)) = self.truth.get(&at) {
            chain.push((*slot, at.clone()));
            match self.parent_hash(&at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        chain.reverse();
        chain
    }

    /// Something happens.
    pub(super) fn step(&mut self, random: &mut Random) {
        if let Some(numbered) = self.delayed.front().cloned()
            && (self.delayed.len() > 6 || random.one_in(3))
        {
            self.delayed.pop_front();
            self.announce(numbered);
            return;
        }
        if self.open.is_empty() || (self.forks && self.open.len() < 3 && random.one_in(12)) {
            self.create(random);
            return;
        }
        if self.numbers_banks && self.open.len() < 3 && random.one_in(24) {
            self.contest(random);
            return;
        }
        let at = usize::try_from(random.below(self.open.len() as u64)).unwrap_or(0);
        if self.open[at].writes_left > 0 {
            self.write(at, random);
        } else {
            self.freeze(at, random);
        }
    }

    fn create(&mut self, random: &mut Random) {
        if self.may_replace && random.one_in(8) && self.replace(random) {
            return;
        }
        let newest = self.tips.len() - 1;
        let tip = match random.below(6) {
            0 if self.forks && newest > 0 => newest - 1,
            _ => newest,
        };
        let (parent, parent_hash) = self.tips[tip].clone();
        self.next_slot += random.below(8) / 6;
        let slot = self.next_slot;
        self.next_slot += 1;
        self.open_bank(slot, (parent, parent_hash), random);
    }

    /// Another bank of a slot begins beside an open one, or beside the newest block.
    fn contest(&mut self, random: &mut Random) {
        let newest = self
            .tips
            .last()
            .filter(|(slot, _)| *slot > self.confirmed.0);
        let frozen = newest.and_then(|(slot, hash)| {
            let parent = self.truth.get(hash)?.1.parent;
            Some((*slot, (parent, self.parent_hash(hash)?)))
        });
        let open = self.open.last();
        let open = open.map(|bank| (bank.slot, (bank.parent, bank.parent_hash.clone())));
        let (first, second) = if random.one_in(2) {
            (open, frozen)
        } else {
            (frozen, open)
        };
        if let Some((slot, parent)) = first.or(second) {
            self.open_bank(slot, parent, random);
        }
    }

    /// The newest block, which nothing builds on, is another one after all.
    fn replace(&mut self, random: &mut Random) -> bool {
        let Some((slot, hash)) = self.tips.last().cloned() else {
            return false;
        };
        let built_on = |bank: &OpenBank| bank.parent_hash == hash;
        let Some((_, truth)) = self.truth.get(&hash).cloned() else {
            return false;
        };
        if self.open.iter().any(built_on) || slot <= self.confirmed.0 {
            return false;
        }
        let Some(parent_hash) = self.parent_hash(&hash) else {
            return false;
        };
        self.tips.pop();
        self.blocks.remove(&(slot, None));
        self.delayed
            .retain(|(_, body)| !matches!(body, Body::Slot(status) if status.slot == slot));
        self.open_bank(slot, (truth.parent, parent_hash), random);
        true
    }

    fn open_bank(&mut self, slot: u64, (parent, parent_hash): (u64, String), random: &mut Random) {
        let hash = format!("{slot}-{}{}", self.ring.len(), self.name);
        let id = self.numbers_banks.then_some(self.next_id);
        self.next_id += 1;
        self.ids.extend(id.map(|id| (hash.clone(), id)));
        let bank = OpenBank {
            id,
            slot,
            hash,
            parent,
            parent_hash,
            writes_left: random.below(7),
            content: Vec::new(),
        };
        self.ring
            .push((id, status(slot, Some(parent), SlotStatus::CreatedBank)));
        self.open.push(bank);
    }

    fn write(&mut self, at: usize, random: &mut Random) {
        let version = self.next_version;
        self.next_version += 1;
        let bank = &mut self.open[at];
        bank.writes_left -= 1;
        let body = if random.one_in(4) {
            let mut signature = [0; 64];
            signature[..8].copy_from_slice(&version.to_le_bytes());
            Body::Transaction(Box::new(transaction(bank.slot, Signature::from(signature))))
        } else {
            Body::Account(write(bank.slot, key(random.below(4)), version))
        };
        bank.content.push(body.clone());
        self.ring.push((bank.id, body));
    }

    fn freeze(&mut self, at: usize, random: &mut Random) {
        let bank = self.open.remove(at);
        if self.forks && random.one_in(12) {
            let dead = status(bank.slot, None, SlotStatus::Dead);
            self.ring.push((bank.id, dead));
            return;
        }
        self.parents
            .insert(bank.hash.clone(), bank.parent_hash.clone());
        let meta = Body::BlockMeta(BlockMeta {
            slot: bank.slot,
            parent_slot: bank.parent,
            blockhash: bank.hash.clone(),
            parent_blockhash: bank.parent_hash,
            block_time: None,
            block_height: None,
            executed_transaction_count: 0,
        });
        let mut truth = BankTruth {
            parent: bank.parent,
            ..BankTruth::default()
        };
        for body in &bank.content {
            match body {
                Body::Account(account) => {
                    truth
                        .last_writes
                        .insert(account.pubkey, account.write_version);
                }
                Body::Transaction(transaction) => {
                    truth.transactions.insert(transaction.signature);
                }
                _ => {}
            }
        }
        let is_last = |body: &Body| match body {
            Body::Account(account) => {
                truth.last_writes.get(&account.pubkey) == Some(&account.write_version)
            }
            _ => true,
        };
        let block = Block {
            content: bank
                .content
                .iter()
                .filter(|body| is_last(body))
                .cloned()
                .collect(),
            meta: meta.clone(),
            statuses: Vec::new(),
        };
        self.ring.push((bank.id, meta));
        self.blocks.insert((bank.slot, bank.id), block);
        self.truth.insert(bank.hash.clone(), (bank.slot, truth));
        self.tips.push((bank.slot, bank.hash.clone()));
        self.tips.sort();
        let processed = status(bank.slot, Some(bank.parent), SlotStatus::Processed);
        self.delayed.push_back((bank.id, processed));
        self.commit(random);
    }

    /// Confirms, now and then, what the newest tip builds on, and finalizes what is older.
    fn commit(&mut self, random: &mut Random) {
        let Some((_, tip)) = self.tips.last().cloned() else {
            return;
        };
        if random.one_in(3) || !self.descends(&tip, &self.confirmed.1.clone()) {
            return;
        }
        let Some((_, bank)) = self.truth.get(&tip) else {
            return;
        };
        let parent = bank.parent;
        let Some(parent_hash) = self.parent_hash(&tip) else {
            return;
        };
        if parent <= self.confirmed.0 {
            return;
        }
        self.confirmed = (parent, parent_hash.clone());
        let ancestors: Vec<(u64, String)> = self.confirmed_chain();
        // Forks that do not hold it are given up.
        let tips = std::mem::take(&mut self.tips);
        self.tips = tips
            .into_iter()
            .filter(|(_, hash)| self.descends(hash, &parent_hash))
            .collect();
        let open = std::mem::take(&mut self.open);
        self.open = open
            .into_iter()
            .filter(|bank| self.descends(&bank.parent_hash, &parent_hash))
            .collect();
        let confirmed = status(parent, None, SlotStatus::Confirmed);
        let id = self.ids.get(&parent_hash).copied();
        self.delayed.push_back((id, confirmed));
        if let Some((old, hash)) = ancestors.iter().rev().nth(6)
            && *old > self.finalized
        {
            self.finalized = *old;
            let finalized = status(*old, None, SlotStatus::Finalized);
            let id = self.ids.get(hash).copied();
            self.delayed.push_back((id, finalized));
        }
    }

    fn announce(&mut self, (id, body): Numbered) {
        if let Body::Slot(update) = &body
            && let Some(block) = self.blocks.get_mut(&(update.slot, id))
        {
            block.statuses.push(body.clone());
        }
        self.ring.push((id, body));
    }
}

pub(super) fn write(slot: u64, pubkey: Pubkey, write_version: u64) -> AccountUpdate {
    AccountUpdate {
        slot,
        pubkey,
        owner: Pubkey::default(),
        lamports: 1,
        executable: false,
        rent_epoch: u64::MAX,
        data: bytes::Bytes::new(),
        write_version,
        txn_signature: None,
        is_startup: false,
    }
}

pub(super) fn transaction(slot: u64, signature: Signature) -> TransactionUpdate {
    TransactionUpdate {
        slot,
        index: 0,
        signature,
        is_vote: false,
        error: None,
        account_keys: Vec::new(),
        writable: Vec::new(),
        instructions: Vec::new(),
        inner_instructions: Vec::new(),
        log_messages: Vec::new(),
        logs_missing: false,
        fee: 0,
        compute_units: None,
        pre_balances: Vec::new(),
        post_balances: Vec::new(),
        pre_token_balances: Vec::new(),
        post_token_balances: Vec::new(),
    }
}
