//! Chain script: blocks of numbered events, some of which are not part of the chain in the end (pure).

use std::collections::VecDeque;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use sha2::{Digest, Sha256};
use sluice_geyser::{
    AccountUpdate, BlockMeta, Body, Instruction, SlotStatus, SlotUpdate, TransactionUpdate,
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

/// The first slot.
const FIRST_SLOT: u64 = 1_000;

/// How many blocks a block is behind the newest one when it is confirmed. On mainnet one or two.
const CONFIRMED_BEHIND: usize = 2;

/// How many blocks a block is behind the newest one when it is finalized, as on mainnet.
const FINALIZED_BEHIND: usize = 31;

/// How many programs, accounts and signers there are.
const PROGRAMS: u8 = 3;
const ACCOUNTS: u8 = 8;
const SIGNERS: u8 = 3;

/// Most accounts written, and most transactions executed, in one block.
const MOST_WRITES: usize = 2;
const MOST_TRANSACTIONS: usize = 2;

/// Most events that a program emits in one transaction.
const MOST_EMITTED: usize = 2;

/// Time of the first block, unix seconds, and how much later each slot is.
const FIRST_TIME: i64 = 1_767_225_600;

/// Of a hundred slots, how many are skipped, how many are declared dead, how many the chain abandons, and how many
/// are declared dead and then made anew.
const SKIPPED: u32 = 4;
const DEAD: u32 = 4;
const ABANDONED: u32 = 4;
const REPAIRED: u32 = 3;

/// Of a hundred statuses, how many are left out because that of a descendant follows.
const UNREPORTED_STATUS: u32 = 10;

/// A program that emits events and owns accounts.
#[must_use]
pub fn program(number: u8) -> Pubkey {
    key(b"program", number % PROGRAMS)
}

/// An account that is written now and then.
#[must_use]
pub fn account(number: u8) -> Pubkey {
    key(b"account", number % ACCOUNTS)
}

fn owner_of(account: u8) -> Pubkey {
    program(account)
}

fn key(what: &[u8], number: u8) -> Pubkey {
    let digest = Sha256::new().chain_update(what).chain_update([number]);
    Pubkey::new_from_array(digest.finalize().into())
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An account was written.
    AccountChange {
        /// Which.
        pubkey: Pubkey,
        /// Whose.
        owner: Pubkey,
    },
    /// A transaction invoked a program.
    Transaction {
        /// Its signature.
        signature: Signature,
        /// Who paid for it.
        signer: Pubkey,
        /// The program.
        program: Pubkey,
        /// An account that it names.
        mentioned: Pubkey,
    },
    /// A program emitted an event.
    ProgramEvent {
        /// Signature of the transaction.
        signature: Signature,
        /// Who paid for it.
        signer: Pubkey,
        /// The program.
        program: Pubkey,
    },
}

/// A numbered event. No two of a script have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number, which its content carries.
    pub number: u64,
    /// What happened.
    pub what: What,
}

/// Whether a block is part of the chain in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is confirmed and finalized.
    Kept,
    /// It is declared dead, replaced or abandoned.
    Dropped,
}

/// A block that was streamed at processed.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its slot.
    pub slot: u64,
    /// What becomes of it.
    pub fate: Fate,
    /// What happened in it.
    pub events: Vec<Event>,
}

/// What the stream reports at once.
#[derive(Debug, Default)]
pub struct Turn {
    /// The updates, in order.
    pub reported: Vec<Body>,
    /// The blocks among them.
    pub blocks: Vec<Block>,
}

/// An endless script. The same seed and the same calls give the same one.
#[derive(Debug)]
pub struct ChainScript {
    rng: StdRng,
    seed: u64,
    slot: u64,
    /// Slot and hash of the newest block of the chain.
    tip: (u64, String),
    unconfirmed: VecDeque<u64>,
    unfinalized: VecDeque<u64>,
    /// Slots to be declared dead.
    dying: Vec<u64>,
    next_event: u64,
    next_version: u64,
}

impl ChainScript {
    /// The script of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            seed,
            slot: FIRST_SLOT,
            tip: (FIRST_SLOT - 1, hash(seed, FIRST_SLOT - 1, 0)),
            unconfirmed: VecDeque::new(),
            unfinalized: VecDeque::new(),
            dying: Vec::new(),
            next_event: 1,
            next_version: 1,
        }
    }

    /// The next slot. Without `eventful`, nothing happens in it, and its block is kept.
    pub fn turn(&mut self, eventful: bool) -> Turn {
        let mut turn = Turn::default();
        for slot in std::mem::take(&mut self.dying) {
            turn.reported.push(status(slot, SlotStatus::Dead));
        }
        let slot = self.slot;
        self.slot += 1;
        let lot = if eventful {
            self.rng.random_range(0..100)
        } else {
            u32::MAX
        };
        const DEAD_BELOW: u32 = SKIPPED + DEAD;
        const ABANDONED_BELOW: u32 = DEAD_BELOW + ABANDONED;
        const REPAIRED_BELOW: u32 = ABANDONED_BELOW + REPAIRED;
        match lot {
            0..SKIPPED => {}
            SKIPPED..DEAD_BELOW => {
                self.play(slot, Fate::Dropped, &mut turn);
                self.dying.push(slot);
            }
            DEAD_BELOW..ABANDONED_BELOW => self.play(slot, Fate::Dropped, &mut turn),
            ABANDONED_BELOW..REPAIRED_BELOW => {
                self.play(slot, Fate::Dropped, &mut turn);
                turn.reported.push(status(slot, SlotStatus::Dead));
                self.play(slot, Fate::Kept, &mut turn);
            }
            REPAIRED_BELOW..100 => self.play(slot, Fate::Kept, &mut turn),
            _ => self.seal(slot, Fate::Kept, 0, &mut turn),
        }
        self.settle(&mut turn);
        turn
    }

    /// A block with content.
    fn play(&mut self, slot: u64, fate: Fate, turn: &mut Turn) {
        let mut events = Vec::new();
        let first = turn.reported.len();
        let mut last_writer = None;
        for index in 0..self.rng.random_range(0..=MOST_TRANSACTIONS) {
            let transaction = self.transaction(slot, index, &mut events);
            last_writer = Some(transaction.signature);
            turn.reported.push(Body::Transaction(Box::new(transaction)));
        }
        let mut accounts: Vec<u8> = (0..ACCOUNTS).collect();
        accounts.shuffle(&mut self.rng);
        for number in &accounts[..self.rng.random_range(0..=MOST_WRITES)] {
            let write = self.write(slot, *number, last_writer, &mut events);
            turn.reported.push(Body::Account(write));
        }
        let executed = u64::from(turn.reported.len() > first);
        turn.blocks.push(Block { slot, fate, events });
        self.seal(slot, fate, executed, turn);
    }

    /// The block of a slot, frozen.
    fn seal(&mut self, slot: u64, fate: Fate, executed: u64, turn: &mut Turn) {
        let blockhash = hash(self.seed, slot, self.next_event);
        let age = i64::try_from(slot - FIRST_SLOT).unwrap_or(i64::MAX);
        turn.reported.push(Body::BlockMeta(BlockMeta {
            slot,
            parent_slot: self.tip.0,
            blockhash: blockhash.clone(),
            parent_blockhash: self.tip.1.clone(),
            block_time: Some(FIRST_TIME.saturating_add(age)),
            block_height: Some(slot),
            executed_transaction_count: executed,
        }));
        turn.reported.push(status(slot, SlotStatus::Processed));
        if fate == Fate::Kept {
            self.tip = (slot, blockhash);
            self.unconfirmed.push_back(slot);
        }
    }

    fn settle(&mut self, turn: &mut Turn) {
        while self.unconfirmed.len() > CONFIRMED_BEHIND {
            let slot = self.unconfirmed.pop_front().expect("longer than zero");
            self.unfinalized.push_back(slot);
            self.report_status(slot, SlotStatus::Confirmed, turn);
        }
        while self.unfinalized.len() > FINALIZED_BEHIND {
            let slot = self.unfinalized.pop_front().expect("longer than zero");
            self.report_status(slot, SlotStatus::Finalized, turn);
        }
    }

    fn report_status(&mut self, slot: u64, reached: SlotStatus, turn: &mut Turn) {
        if self.rng.random_range(0..100) >= UNREPORTED_STATUS {
            turn.reported.push(status(slot, reached));
        }
    }

    fn number(&mut self) -> u64 {
        let number = self.next_event;
        self.next_event += 1;
        number
    }

    fn transaction(
        &mut self,
        slot: u64,
        index: usize,
        events: &mut Vec<Event>,
    ) -> TransactionUpdate {
        let number = self.number();
        let signature = signature(self.seed, number);
        let signer = key(b"signer", self.rng.random_range(0..SIGNERS));
        let program = program(self.rng.random_range(0..PROGRAMS));
        let mentioned = account(self.rng.random_range(0..ACCOUNTS));
        let what = What::Transaction {
            signature,
            signer,
            program,
            mentioned,
        };
        events.push(Event { number, what });
        let mut logs = vec![format!("Program {program} invoke [1]")];
        for _ in 0..self.rng.random_range(0..=MOST_EMITTED) {
            let number = self.number();
            logs.push(format!(
                "Program data: {}",
                STANDARD.encode(emitted(number))
            ));
            let what = What::ProgramEvent {
                signature,
                signer,
                program,
            };
            events.push(Event { number, what });
        }
        logs.push(format!("Program {program} success"));
        TransactionUpdate {
            slot,
            index: u64::try_from(index).unwrap_or(u64::MAX),
            signature,
            is_vote: false,
            error: None,
            account_keys: vec![signer, program, mentioned],
            instructions: vec![Instruction {
                program_index: 1,
                accounts: vec![0, 2],
                data: number.to_le_bytes().to_vec(),
            }],
            inner_instructions: Vec::new(),
            log_messages: logs,
            logs_missing: false,
            fee: 5_000,
            compute_units: Some(1_234),
            pre_balances: vec![1, 1, 1],
            post_balances: vec![1, 1, 1],
        }
    }

    fn write(
        &mut self,
        slot: u64,
        number: u8,
        writer: Option<Signature>,
        events: &mut Vec<Event>,
    ) -> AccountUpdate {
        let (pubkey, owner) = (account(number), owner_of(number));
        let event = Event {
            number: self.number(),
            what: What::AccountChange { pubkey, owner },
        };
        events.push(event);
        let write_version = self.next_version;
        self.next_version += 1;
        AccountUpdate {
            slot,
            pubkey,
            owner,
            lamports: 1,
            executable: false,
            rent_epoch: u64::MAX,
            data: Bytes::copy_from_slice(&event.number.to_le_bytes()),
            write_version,
            txn_signature: writer,
            is_startup: false,
        }
    }
}

/// First bytes of every event that a program emits.
const DISCRIMINATOR: [u8; 8] = *b"numbered";

/// What a program emits for the event of this number.
fn emitted(number: u64) -> Vec<u8> {
    [DISCRIMINATOR, number.to_le_bytes()].concat()
}

/// The number of an event that a program emitted.
#[must_use]
pub fn number_of_emitted(data: &[u8]) -> Option<u64> {
    number_of_written(data.strip_prefix(&DISCRIMINATOR)?)
}

/// The number of the write that left an account with this data.
#[must_use]
pub fn number_of_written(data: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(data.try_into().ok()?))
}

/// The number of the transaction with this signature.
#[must_use]
pub fn number_of_signature(signature: &Signature) -> Option<u64> {
    let first = signature.as_ref().first_chunk::<8>()?;
    Some(u64::from_le_bytes(*first))
}

/// The number, and bytes that look like any signature's.
fn signature(seed: u64, number: u64) -> Signature {
    let mut bytes = [0; 64];
    StdRng::seed_from_u64(seed ^ number).fill(&mut bytes[..]);
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Signature::from(bytes)
}

fn hash(seed: u64, slot: u64, variant: u64) -> String {
    let digest = [seed, slot, variant]
        .into_iter()
        .fold(Sha256::new(), |digest, part| {
            digest.chain_update(part.to_le_bytes())
        });
    bs58::encode(digest.finalize()).into_string()
}

fn status(slot: u64, status: SlotStatus) -> Body {
    Body::Slot(SlotUpdate {
        slot,
        parent: None,
        status,
        dead_error: None,
    })
}
