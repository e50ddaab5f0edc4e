//! Swaps of mainnet's exchange, taken from its events, executed again directly and through the guard.

use base64::{Engine, engine::general_purpose::STANDARD};
use cpmm::{
    AmmConfig, Direction, FeeRate, PerToken,
    fixtures::published_config,
    instruction::{SwapAccounts, swap_base_input},
};
use serde::Deserialize;
use sluice_testkit::{
    pool::{Pool, PoolSpec, TokenSpec, User, constant_fee, guarded_swap},
    svm::{Executed, Svm},
};
use solana_instruction::Instruction;

const VECTORS: &str = include_str!("../../../../../crates/cpmm/tests/data/cpmm-mainnet.json");

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    direction: Option<String>,
    reserve_in: String,
    reserve_out: String,
    amount_in_gross: String,
    input_transfer_fee_bps: String,
    output_transfer_fee_bps: String,
    trade_fee_rate: String,
    amount_out_received: String,
    event_base64: Option<String>,
}

/// Where the figures of a swap event stand: everything but the pool (8..40) and the mints (89..153), which are made up
/// here, and the fees behind them, which only the new form has.
const EVENT_AMOUNTS: std::ops::Range<usize> = 40..89;
const EVENT_FEES: std::ops::Range<usize> = 153..170;

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("numbers are decimal strings")
}

impl Vector {
    fn direction(&self) -> Direction {
        match self.direction.as_deref() {
            Some("1to0") => Direction::OneForZero,
            // Vector D's direction is unknown. It changes no figure: the pool's creator fee is disabled.
            Some("0to1") | None => Direction::ZeroForOne,
            Some(other) => panic!("direction {other}"),
        }
    }

    fn setup(&self) -> PoolSpec {
        let input = token(&self.reserve_in, &self.input_transfer_fee_bps);
        let output = token(&self.reserve_out, &self.output_transfer_fee_bps);
        let (token_0, token_1) = match self.direction() {
            Direction::ZeroForOne => (input, output),
            Direction::OneForZero => (output, input),
        };
        let config = AmmConfig {
            trade_fee_rate: FeeRate(number(&self.trade_fee_rate)),
            ..published_config()
        };
        PoolSpec {
            config,
            ..PoolSpec::of(token_0, token_1)
        }
    }

    fn execute(
        &self,
        instruction: impl Fn(&SwapAccounts, u64, u64) -> Instruction,
    ) -> (Executed, u64) {
        let mut svm = Svm::new();
        let pool: Pool = svm.open(&self.name, &self.setup());
        let amount_in = number(&self.amount_in_gross);
        let user: User = svm.fund("trader", &pool, PerToken::new(amount_in, amount_in));
        let accounts = pool.swap_accounts(&user, self.direction());
        let before = svm.balance(accounts.output_token_account);
        let minimum = number(&self.amount_out_received);
        let swap = instruction(&accounts, amount_in, minimum);
        let executed = svm
            .send(&[swap], &[&user.keypair])
            .unwrap_or_else(|refused| panic!("{}: {refused:?}", self.name));
        let received = svm.balance(accounts.output_token_account) - before;
        (executed, received)
    }
}

fn token(reserve: &str, basis_points: &str) -> TokenSpec {
    let vault = number(reserve);
    match number(basis_points) {
        0 => TokenSpec::spl(vault),
        basis_points => TokenSpec::with_fee(vault, constant_fee(basis_points)),
    }
}

fn vectors() -> Vec<Vector> {
    let file: File = serde_json::from_str(VECTORS).expect("the vectors are JSON");
    assert_eq!(file.vectors.len(), 4);
    file.vectors
}

#[test]
fn the_exchange_pays_what_mainnet_paid_and_logs_the_same_figures() {
    for vector in vectors() {
        let (executed, received) = vector.execute(swap_base_input);
        assert_eq!(
            received,
            number::<u64>(&vector.amount_out_received),
            "{}",
            vector.name
        );

        let [event] = &executed.events[..] else {
            panic!("{}: {} events", vector.name, executed.events.len());
        };
        let Some(mainnet) = &vector.event_base64 else {
            continue;
        };
        let mainnet = STANDARD.decode(mainnet).expect("events are base64");
        assert_eq!(event.len(), 170, "{}", vector.name);
        assert_eq!(event[..8], mainnet[..8], "{}", vector.name);
        assert_eq!(
            event[EVENT_AMOUNTS], mainnet[EVENT_AMOUNTS],
            "{}",
            vector.name
        );
        if mainnet.len() == event.len() {
            assert_eq!(event[EVENT_FEES], mainnet[EVENT_FEES], "{}", vector.name);
        }
    }
}

#[test]
fn the_guard_lets_through_exactly_what_mainnet_paid() {
    for vector in vectors() {
        let (executed, received) = vector.execute(guarded_swap);
        assert_eq!(
            received,
            number::<u64>(&vector.amount_out_received),
            "{}",
            vector.name
        );
        assert_eq!(
            executed.return_data.1,
            received.to_le_bytes(),
            "{}",
            vector.name
        );
    }
}
