//! Serialized inputs, natively: the walk reads what the runtime wrote, and both entrypoints end alike.
//!
//! Every input is a heap allocation of its own length, so that under AddressSanitizer a read or write outside of it ends
//! the test. No call is made here, so that a swap that passes every check ends as one that paid nothing.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and lengths of small inputs, in tests"
)]

use super::*;
use crate::{
    constants::{TOKEN_2022_ID, TOKEN_ID},
    entrypoint::{check_length, serve},
    error::SwapGuardError,
    instruction,
    instructions::{swap, swap_two_hops},
};
use anchor_lang::Discriminator;
use std::collections::BTreeMap;

/// How many random inputs are compared.
const INPUTS: usize = 2_000;

/// One record of an input.
#[derive(Clone)]
enum Record {
    Account(Account),
    /// Of the account of this position.
    Repetition(u8),
}

#[derive(Clone)]
struct Account {
    flags: [bool; 3],
    address: Address,
    owner: Address,
    lamports: u64,
    data: Vec<u8>,
}

/// An input in memory, aligned as the runtime aligns it.
struct Serialized {
    words: Box<[u64]>,
    /// Where the instruction's data begins, bytes.
    data_at: usize,
}

impl Serialized {
    fn of(records: &[Record], data: &[u8], program: &Address) -> Self {
        let mut bytes = (records.len() as u64).to_le_bytes().to_vec();
        for record in records {
            match record {
                Record::Repetition(first) => bytes.extend([*first, 0, 0, 0, 0, 0, 0, 0]),
                Record::Account(account) => account.write(&mut bytes),
            }
        }
        bytes.extend((data.len() as u64).to_le_bytes());
        let data_at = bytes.len();
        bytes.extend(data);
        bytes.extend(program.as_array());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let (words, _) = bytes.as_chunks::<8>();
        Self {
            words: words.iter().copied().map(u64::from_ne_bytes).collect(),
            data_at,
        }
    }

    fn input(&mut self) -> Input {
        let input = self.words.as_mut_ptr().cast::<u8>();
        Input {
            input,
            data: input.wrapping_add(self.data_at),
        }
    }
}

impl Account {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(NOT_BORROWED);
        bytes.extend(self.flags.map(u8::from));
        bytes.extend([0; 4]);
        bytes.extend(self.address.as_array());
        bytes.extend(self.owner.as_array());
        bytes.extend(self.lamports.to_le_bytes());
        bytes.extend((self.data.len() as u64).to_le_bytes());
        bytes.extend(&self.data);
        bytes.resize(bytes.len() + MAX_PERMITTED_DATA_INCREASE, 0);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(u64::MAX.to_le_bytes());
    }
}

/// Xorshift: the same numbers for the same seed, without a crate.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).expect("48 bits") % end
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A form by its discriminator, with the positions that two hops have beyond one.
const FORMS: [(&[u8], usize, bool); 6] = [
    (instruction::Swap::DISCRIMINATOR, swap::ACCOUNTS, false),
    (
        instruction::SwapExactOut::DISCRIMINATOR,
        swap::ACCOUNTS,
        false,
    ),
    (
        instruction::SwapTwoHops::DISCRIMINATOR,
        swap_two_hops::ACCOUNTS,
        false,
    ),
    (instruction::SwapTo::DISCRIMINATOR, swap::ACCOUNTS, true),
    (
        instruction::SwapExactOutTo::DISCRIMINATOR,
        swap::ACCOUNTS,
        true,
    ),
    (
        instruction::SwapTwoHopsTo::DISCRIMINATOR,
        swap_two_hops::ACCOUNTS,
        true,
    ),
];

fn address(at: usize) -> Address {
    Address::new_from_array([u8::try_from(at).expect("few accounts") + 1; 32])
}

/// Accounts with which a form passes every check of the guard before the exchange.
fn good(count: usize) -> Vec<Account> {
    let (token_accounts, mints) = if count == swap::ACCOUNTS {
        (vec![5, 6], vec![11, 12])
    } else {
        (vec![5, 6, 7], vec![19, 20, 21])
    };
    let mut accounts: Vec<Account> = (0..count)
        .map(|at| Account {
            flags: [at == 0, true, at == EXCHANGE],
            address: if at == EXCHANGE {
                EXCHANGE_ID
            } else {
                address(at)
            },
            owner: TOKEN_ID,
            lamports: at as u64,
            data: vec![0; at * 7],
        })
        .collect();
    for (account, mint) in token_accounts.into_iter().zip(mints) {
        let mut data = vec![0; 165];
        data[..32].copy_from_slice(address(mint).as_array());
        data[32..64].copy_from_slice(address(0).as_array());
        data[64..72].copy_from_slice(&1_000_u64.to_le_bytes());
        accounts[account].data = data;
    }
    accounts
}

fn data(discriminator: &[u8], has_receiver: bool, numbers: [u64; 3]) -> Vec<u8> {
    let mut data = discriminator.to_vec();
    data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    if has_receiver {
        data.extend(address(0).as_array());
    }
    data
}

/// An input that passes, or up to three steps away from one.
fn random_input(random: &mut Random) -> (Vec<Record>, Vec<u8>) {
    let (discriminator, count, has_receiver) = *random.pick(&FORMS);
    let numbers = [1, *random.pick(&[0, 1, 1, 1]), 0];
    let mut data = data(discriminator, has_receiver, numbers);
    let accounts = good(count).into_iter().map(Record::Account);
    let mut records: Vec<Record> = accounts.collect();
    for _ in 0..random.below(4) {
        let at = 1 + random.below(records.len() - 1);
        let repetition = u8::try_from(random.below(at)).expect("few");
        match (random.below(8), &mut records[at]) {
            (0, _) => records.truncate(at.max(2)),
            (1, _) => data.truncate(random.below(data.len())),
            (2, record @ Record::Account(_)) => *record = Record::Repetition(repetition),
            (3, Record::Account(account)) => account.flags[random.below(2)] ^= true,
            (4, Record::Account(account)) => account.data.truncate(random.below(200)),
            (5, Record::Account(account)) => account.data.resize(random.below(300), 2),
            (6, Record::Account(account)) => account.owner = TOKEN_2022_ID,
            (_, Record::Account(account)) => account.address = address(random.below(count)),
            _ => {}
        }
    }
    resolve(&mut records);
    (records, data)
}

/// The runtime's repetitions name first records alone, and the first record is none.
fn resolve(records: &mut [Record]) {
    for at in 0..records.len() {
        if let Record::Repetition(first) = records[at]
            && let Record::Repetition(earlier) = records[usize::from(first)]
        {
            records[at] = Record::Repetition(earlier);
        }
    }
}

fn behind_the_framework(input: &Input) -> u64 {
    check_length(input.data()).map_or_else(Refused::code, |()| {
        // SAFETY: it is a whole input, and nothing else refers to it.
        unsafe { crate::__anchor_dispatch(input.input, input.data) }
    })
}

#[test]
fn both_entrypoints_end_alike_over_random_inputs() {
    let mut random = Random(0x5eed_0f14);
    let mut ends = BTreeMap::<u64, usize>::new();
    for index in 0..INPUTS {
        let (records, data) = random_input(&mut random);
        let program = if index % 64 == 0 { TOKEN_ID } else { crate::ID };
        // Each with an input of its own: the framework writes into it.
        let [mut ours, mut theirs] = [(); 2].map(|()| Serialized::of(&records, &data, &program));
        let ended = serve(&ours.input()).map_or_else(Refused::code, |()| 0);
        assert_eq!(
            ended,
            behind_the_framework(&theirs.input()),
            "input {index}"
        );
        *ends.entry(ended).or_default() += 1;
    }
    // Passed every check, and was paid nothing.
    let paid_nothing = Refused::from(SwapGuardError::SlippageExceeded).code();
    assert!(ends[&paid_nothing] > INPUTS / 8, "{ends:?}");
    assert!(ends.len() > 9, "{ends:?}");
}

/// Walks over the records and compares every account with what was written.
fn assert_walked<const N: usize>(records: &[Record]) {
    let mut serialized = Serialized::of(records, &[], &crate::ID);
    let input = serialized.input();
    let mut room = Room::<N>::empty();
    let accounts = input.walk(&mut room).expect("enough records");
    let mut repeated = 0;
    for at in 0..N {
        let account = match &records[at] {
            Record::Account(account) => account,
            Record::Repetition(first) => {
                repeated |= 1 << first | 1 << at;
                match &records[usize::from(*first)] {
                    Record::Account(account) => account,
                    Record::Repetition(_) => panic!("resolved"),
                }
            }
        };
        let view = accounts.at(at);
        assert_eq!(*view.address(), account.address, "position {at}");
        assert!(view.owned_by(&account.owner), "position {at}");
        assert_eq!(view.lamports(), account.lamports);
        assert_eq!(
            [view.is_signer(), view.is_writable(), view.executable()],
            account.flags
        );
        with_data(&view, |data| assert_eq!(data, account.data));
        if at > EXCHANGE {
            assert_eq!(accounts.are_writable(&[at]), account.flags[1]);
        }
    }
    // Token programs may repeat each other without being marked.
    assert_eq!(accounts.repeated & !UNMARKED, repeated & !UNMARKED);
    assert_eq!(accounts.infos.len(), N - 1);
}

/// Positions of token programs in both lists.
const UNMARKED: u64 = 1 << 9 | 1 << 10 | 1 << 16 | 1 << 17 | 1 << 18;

#[test]
fn the_walk_reads_every_account_wherever_it_repeats_another() {
    for (count, is_two_hops) in [(swap::ACCOUNTS, false), (swap_two_hops::ACCOUNTS, true)] {
        for at in 1..count {
            for first in 0..at {
                let accounts = good(count).into_iter().map(Record::Account);
                let mut records: Vec<Record> = accounts.collect();
                records[at] = Record::Repetition(u8::try_from(first).expect("few"));
                if is_two_hops {
                    assert_walked::<{ swap_two_hops::ACCOUNTS }>(&records);
                } else {
                    assert_walked::<{ swap::ACCOUNTS }>(&records);
                }
            }
        }
    }
}

#[test]
fn data_of_every_length_is_stepped_over() {
    for length in 0..64 {
        let mut accounts = good(swap::ACCOUNTS);
        for (at, account) in accounts.iter_mut().enumerate() {
            account.data.resize(length + at, 7);
        }
        let records: Vec<Record> = accounts.into_iter().map(Record::Account).collect();
        assert_walked::<{ swap::ACCOUNTS }>(&records);
    }
}

#[test]
fn too_few_accounts_are_refused_before_any_is_read() {
    for count in 0..swap::ACCOUNTS {
        let accounts = good(swap::ACCOUNTS).into_iter().take(count);
        let records: Vec<Record> = accounts.map(Record::Account).collect();
        let mut serialized = Serialized::of(&records, &[], &crate::ID);
        let mut room = Room::<{ swap::ACCOUNTS }>::empty();
        let refused = serialized.input().walk(&mut room).err();
        assert_eq!(refused, Some(ErrorCode::AccountNotEnoughKeys.into()));
    }
}
