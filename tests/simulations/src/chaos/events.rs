//! Numbered events: transactions, account changes and program events of which no two have the same number (pure).

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use sha2::{Digest, Sha256};
use sluice_geyser::{Instruction, TransactionUpdate};
use sluice_testkit::accounts::{Account, Content};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

/// How many programs, accounts and signers there are.
const PROGRAMS: u8 = 3;
const ACCOUNTS: u8 = 8;
const SIGNERS: u8 = 3;

/// Most accounts written, and most transactions executed, in one block.
const MOST_WRITES: usize = 2;
const MOST_TRANSACTIONS: usize = 2;

/// Most events that a program emits in one transaction.
const MOST_EMITTED: usize = 2;

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

/// A numbered event. No two of a chain have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number, which its content carries.
    pub number: u64,
    /// What happened.
    pub what: What,
}

/// Makes the events of one chain. The same seed and the same calls give the same ones.
#[derive(Debug)]
pub struct NumberedEvents {
    seed: u64,
    last: u64,
}

impl NumberedEvents {
    /// The events of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, last: 0 }
    }

    /// The transactions of a block, and what happened in them.
    pub fn transactions(&mut self, rng: &mut StdRng) -> (Vec<TransactionUpdate>, Vec<Event>) {
        let mut events = Vec::new();
        let transactions = (0..rng.random_range(0..=MOST_TRANSACTIONS))
            .map(|_| self.transaction(rng, &mut events))
            .collect();
        (transactions, events)
    }

    /// The account changes of a block, each of another account, because a replay has only the last write of each.
    pub fn writes(&mut self, rng: &mut StdRng) -> Vec<(Event, Pubkey, Content)> {
        let mut accounts: Vec<u8> = (0..ACCOUNTS).collect();
        accounts.shuffle(rng);
        accounts.truncate(rng.random_range(0..=MOST_WRITES));
        let written = accounts.into_iter().map(|number| self.write(number));
        written.collect()
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn transaction(&mut self, rng: &mut StdRng, events: &mut Vec<Event>) -> TransactionUpdate {
        let number = self.number();
        let signature = signature(self.seed, number);
        let signer = key(b"signer", rng.random_range(0..SIGNERS));
        let program = program(rng.random_range(0..PROGRAMS));
        let mentioned = account(rng.random_range(0..ACCOUNTS));
        let what = What::Transaction {
            signature,
            signer,
            program,
            mentioned,
        };
        events.push(Event { number, what });
        let mut logs = vec![format!("Program {program} invoke [1]")];
        for _ in 0..rng.random_range(0..=MOST_EMITTED) {
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
            // The chain gives it its place.
            slot: 0,
            index: 0,
            signature,
            is_vote: false,
            error: None,
            account_keys: vec![signer, program, mentioned],
            writable: vec![0],
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
            pre_token_balances: Vec::new(),
            post_token_balances: Vec::new(),
        }
    }

    fn write(&mut self, number: u8) -> (Event, Pubkey, Content) {
        let (pubkey, owner) = (account(number), owner_of(number));
        let event = Event {
            number: self.number(),
            what: What::AccountChange { pubkey, owner },
        };
        let content = Content::Other(Account {
            owner,
            lamports: 1,
            data: Bytes::copy_from_slice(&event.number.to_le_bytes()),
        });
        (event, pubkey, content)
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
