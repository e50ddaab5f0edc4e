//! Pools opened through the exchange's own instruction, and then swapped through the guard.

use cpmm::{
    Direction, PerToken, PoolState, TokenAccount, TokenAccountKind, TokenProgram, TransferFee,
    TransferFeeConfig, ids,
};
use sluice_testkit::{
    names::{address, keypair},
    pool::{Pool, PoolSpec, TokenSpec, User, guarded_swap},
    svm::{Svm, UNIX_TIMESTAMP},
};
use solana_instruction::{AccountMeta, Instruction};
use solana_keypair::Keypair;
use solana_pubkey::{Pubkey, pubkey};
use solana_signer::Signer;
use swap_guard_interface::{ASSOCIATED_TOKEN_PROGRAM, associated_token_address};

/// First eight bytes of the SHA-256 of `global:initialize`.
const INITIALIZE: [u8; 8] = [0xaf, 0xaf, 0x6d, 0x1f, 0x0d, 0x98, 0x9b, 0xed];
const RENT: Pubkey = pubkey!("SysvarRent111111111111111111111111111111111");
const COMPUTE_BUDGET: Pubkey = pubkey!("ComputeBudget111111111111111111111111111111");
/// LP tokens that stay locked for ever.
const LOCKED_LP: u64 = 100;
/// Rent-exempt reserve of a token account, lamports.
const RESERVE: u64 = 2_039_280;

/// The first deposit.
const AMOUNTS: PerToken<u64> = PerToken::new(1_000_000_000, 4_000_000_000);
/// What the creator has beforehand.
const START: u64 = 10_000_000_000;

/// A creator with tokens and everything `initialize` expects to find, of a pool that does not exist yet.
struct NewPool {
    svm: Svm,
    creator: User,
    pool: Pool,
}

impl NewPool {
    /// `pool_key` signs for a pool at an address of its own; without it the pool is at its derived address.
    fn set(token_0: TokenSpec, token_1: TokenSpec, pool_key: Option<&Keypair>) -> Self {
        let mut svm = Svm::new();
        let donor = svm.open("donor", &PoolSpec::of(token_0, token_1));
        let creator = svm.fund("creator", &donor, PerToken::new(START, START));
        svm.enrich(creator.keypair.pubkey());
        svm.place(
            ids::CREATE_POOL_FEE_RECEIVER,
            ids::SPL_TOKEN,
            TokenAccount {
                mint: ids::WRAPPED_SOL,
                owner: address("fee collector"),
                amount: 0,
                frozen: false,
            }
            .encode(TokenAccountKind::Native { reserve: RESERVE }),
        );
        let PoolState {
            amm_config, mints, ..
        } = donor.state;
        let derived = derive(&[
            b"pool",
            amm_config.as_ref(),
            mints.token_0.as_ref(),
            mints.token_1.as_ref(),
        ]);
        let pool = pool_key.map_or(derived, Signer::pubkey);
        let vault = |mint: Pubkey| derive(&[b"pool_vault", pool.as_ref(), mint.as_ref()]);
        let state = PoolState {
            pool_creator: creator.keypair.pubkey(),
            vaults: PerToken::new(vault(mints.token_0), vault(mints.token_1)),
            lp_mint: derive(&[b"pool_lp_mint", pool.as_ref()]),
            observation: derive(&[b"observation", pool.as_ref()]),
            ..donor.state
        };
        let pool = Pool {
            address: pool,
            state,
            tokens: donor.tokens,
        };
        Self { svm, creator, pool }
    }

    fn creator_lp(&self) -> Pubkey {
        associated_token_address(
            &self.creator.keypair.pubkey(),
            &self.pool.state.lp_mint,
            &ids::SPL_TOKEN,
        )
    }

    fn initialize(&self, open_time: u64, pool_signs: bool) -> Instruction {
        let state = &self.pool.state;
        let read = |key| AccountMeta::new_readonly(key, false);
        let write = |key| AccountMeta::new(key, false);
        let mut data = INITIALIZE.to_vec();
        for number in [AMOUNTS.token_0, AMOUNTS.token_1, open_time] {
            data.extend(number.to_le_bytes());
        }
        let accounts = vec![
            AccountMeta::new(self.creator.keypair.pubkey(), true),
            read(state.amm_config),
            read(ids::AUTHORITY),
            AccountMeta::new(self.pool.address, pool_signs),
            read(state.mints.token_0),
            read(state.mints.token_1),
            write(state.lp_mint),
            write(self.creator.accounts.token_0),
            write(self.creator.accounts.token_1),
            write(self.creator_lp()),
            write(state.vaults.token_0),
            write(state.vaults.token_1),
            write(ids::CREATE_POOL_FEE_RECEIVER),
            write(state.observation),
            read(ids::SPL_TOKEN),
            read(state.token_programs.token_0),
            read(state.token_programs.token_1),
            read(ASSOCIATED_TOKEN_PROGRAM),
            read(Pubkey::default()),
            read(RENT),
        ];
        Instruction {
            program_id: ids::PROGRAM_ID,
            accounts,
            data,
        }
    }
}

fn derive(seeds: &[&[u8]]) -> Pubkey {
    Pubkey::find_program_address(seeds, &ids::PROGRAM_ID).0
}

/// Raises the transaction's limit: eight accounts are created.
fn compute_limit() -> Instruction {
    let mut data = vec![2];
    data.extend(1_400_000_u32.to_le_bytes());
    Instruction {
        program_id: COMPUTE_BUDGET,
        accounts: Vec::new(),
        data,
    }
}

/// Opens the pool, checks what was written, and swaps in both directions as soon as it is open.
fn assert_opens_and_swaps(
    mut new_pool: NewPool,
    pool_key: Option<&Keypair>,
    vaults: PerToken<u64>,
) {
    let initialize = new_pool.initialize(0, pool_key.is_some());
    let mut signers = vec![&new_pool.creator.keypair];
    signers.extend(pool_key);
    new_pool
        .svm
        .send(&[initialize, compute_limit()], &signers)
        .expect("the pool opens");

    let now = UNIX_TIMESTAMP.cast_unsigned();
    let state = new_pool.svm.pool_state(new_pool.pool.address);
    let liquidity = (u128::from(vaults.token_0) * u128::from(vaults.token_1)).isqrt();
    let expected = PoolState {
        lp_supply: u64::try_from(liquidity).expect("the root of a product of u64"),
        open_time: now + 1,
        recent_epoch: state.recent_epoch,
        ..new_pool.pool.state.clone()
    };
    assert_eq!(state, expected);
    assert_eq!(new_pool.svm.balance(state.vaults.token_0), vaults.token_0);
    assert_eq!(new_pool.svm.balance(state.vaults.token_1), vaults.token_1);
    assert_eq!(
        new_pool.svm.balance(new_pool.creator_lp()),
        expected.lp_supply - LOCKED_LP
    );
    assert_eq!(
        new_pool.svm.balance(ids::CREATE_POOL_FEE_RECEIVER),
        cpmm::fixtures::published_config().create_pool_fee
    );

    for direction in [Direction::ZeroForOne, Direction::OneForZero] {
        let accounts = new_pool.pool.swap_accounts(&new_pool.creator, direction);
        new_pool.svm.set_time(500, UNIX_TIMESTAMP);
        let early = new_pool.svm.send(
            &[guarded_swap(&accounts, 1_000_000, 1)],
            &[&new_pool.creator.keypair],
        );
        let Err(early) = early else {
            panic!("swapped before the pool opened");
        };
        assert_eq!((early.raised_by(), early.code()), (ids::PROGRAM_ID, 6000));

        new_pool.svm.set_time(500, UNIX_TIMESTAMP + 1);
        let before = new_pool.svm.balance(accounts.output_token_account);
        let executed = new_pool
            .svm
            .send(
                &[guarded_swap(&accounts, 1_000_000, 1)],
                &[&new_pool.creator.keypair],
            )
            .expect("the open pool swaps");
        let received = new_pool.svm.balance(accounts.output_token_account) - before;
        assert_eq!(executed.return_data.1, received.to_le_bytes());
    }
}

#[test]
fn opens_a_pool_of_spl_tokens_at_its_derived_address() {
    let new_pool = NewPool::set(TokenSpec::spl(0), TokenSpec::spl(0), None);
    assert_opens_and_swaps(new_pool, None, AMOUNTS);
}

#[test]
fn opens_a_pool_at_an_address_that_signs() {
    let pool_key = keypair("pool at a random address");
    let new_pool = NewPool::set(TokenSpec::spl(0), TokenSpec::token_2022(0), Some(&pool_key));
    assert_opens_and_swaps(new_pool, Some(&pool_key), AMOUNTS);
}

#[test]
fn opens_a_pool_of_a_token_with_transfer_fee_on_what_arrived() {
    let fee = TransferFee {
        epoch: 0,
        maximum_fee: u64::MAX,
        basis_points: 100,
    };
    let fee = TransferFeeConfig {
        older: fee,
        newer: fee,
    };
    let new_pool = NewPool::set(TokenSpec::spl(0), TokenSpec::with_fee(0, fee), None);
    assert_eq!(
        new_pool.pool.tokens.token_1.program,
        TokenProgram::Token2022
    );
    let arrived = PerToken::new(AMOUNTS.token_0, AMOUNTS.token_1 / 100 * 99);
    assert_opens_and_swaps(new_pool, None, arrived);
}

#[test]
fn keeps_an_opening_time_that_lies_ahead() {
    let mut new_pool = NewPool::set(TokenSpec::spl(0), TokenSpec::spl(0), None);
    let open_time = UNIX_TIMESTAMP.cast_unsigned() + 3_600;
    let initialize = new_pool.initialize(open_time, false);
    new_pool
        .svm
        .send(&[initialize, compute_limit()], &[&new_pool.creator.keypair])
        .expect("the pool opens");
    assert_eq!(
        new_pool.svm.pool_state(new_pool.pool.address).open_time,
        open_time
    );
}

#[test]
fn rejects_a_pool_at_a_foreign_address_that_does_not_sign() {
    let pool_key = keypair("pool at a random address");
    let mut new_pool = NewPool::set(TokenSpec::spl(0), TokenSpec::spl(0), Some(&pool_key));
    let initialize = new_pool.initialize(0, false);
    let sent = new_pool
        .svm
        .send(&[initialize, compute_limit()], &[&new_pool.creator.keypair]);
    let Err(refused) = sent else {
        panic!("opened a pool that did not sign");
    };
    assert_eq!((refused.instruction, refused.code()), (0, 2501));
    assert_eq!(
        new_pool.svm.balance(new_pool.creator.accounts.token_0),
        START
    );
}
