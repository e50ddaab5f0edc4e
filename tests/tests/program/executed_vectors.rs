//! Three thousand swaps that the official exchange executed, with their whole input state, done again.

use cpmm::{
    AmmConfig, Direction, FeeRate, PerToken, PoolState, TransferFee, TransferFeeConfig,
    instruction::swap_base_input,
};
use serde::Deserialize;
use sluice_tests::svm::{PoolSetup, Svm, Token, config_0};

const CASES: &str = include_str!("../../../crates/cpmm/tests/data/cpmm-executed.json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    #[serde(deserialize_with = "number")]
    amount_in: u64,
    #[serde(deserialize_with = "number")]
    minimum_amount_out: u64,
    clock: CaseClock,
    config: CaseConfig,
    pool: CasePool,
    token0: CaseToken,
    token1: CaseToken,
    zero_for_one: bool,
    result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseClock {
    epoch: u64,
    unix_timestamp: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseConfig {
    trade_fee_rate: u64,
    protocol_fee_rate: u64,
    fund_fee_rate: u64,
    creator_fee_rate: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CasePool {
    creator_fee_on: u8,
    enable_creator_fee: bool,
    status: u8,
    open_time: u64,
    #[serde(deserialize_with = "pair")]
    protocol_fees: PerToken<u64>,
    #[serde(deserialize_with = "pair")]
    fund_fees: PerToken<u64>,
    #[serde(deserialize_with = "pair")]
    creator_fees: PerToken<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseToken {
    program: String,
    transfer_fee: Option<CaseFees>,
    #[serde(deserialize_with = "number")]
    vault: u64,
}

#[derive(Deserialize)]
struct CaseFees {
    older: CaseFee,
    newer: CaseFee,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseFee {
    epoch: u64,
    #[serde(deserialize_with = "number")]
    maximum_fee: u64,
    basis_points: u16,
}

/// What the exchange did, without the compute units, which hold for one build of it only.
#[derive(Deserialize, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    #[serde(rename_all = "camelCase")]
    Ok {
        #[serde(deserialize_with = "number")]
        received: u64,
        #[serde(deserialize_with = "number")]
        input_vault: u64,
        #[serde(deserialize_with = "number")]
        output_vault: u64,
        #[serde(deserialize_with = "pair")]
        protocol_fees: PerToken<u64>,
        #[serde(deserialize_with = "pair")]
        fund_fees: PerToken<u64>,
        #[serde(deserialize_with = "pair")]
        creator_fees: PerToken<u64>,
    },
    ErrorCode(u32),
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn pair<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<PerToken<u64>, D::Error> {
    let texts = <[String; 2]>::deserialize(deserializer)?;
    let parse = |text: &String| text.parse().map_err(serde::de::Error::custom);
    Ok(PerToken::new(parse(&texts[0])?, parse(&texts[1])?))
}

impl CaseToken {
    fn setup(&self) -> Token {
        let fee = |fee: &CaseFee| TransferFee {
            epoch: fee.epoch,
            maximum_fee: fee.maximum_fee,
            basis_points: fee.basis_points,
        };
        match (&*self.program, &self.transfer_fee) {
            ("spl-token", None) => Token::spl(self.vault),
            ("token-2022", None) => Token::token_2022(self.vault),
            ("token-2022", Some(fees)) => {
                let config = TransferFeeConfig {
                    older: fee(&fees.older),
                    newer: fee(&fees.newer),
                };
                Token::with_fee(self.vault, config)
            }
            (program, fee) => panic!("{program} with fee: {}", fee.is_some()),
        }
    }
}

impl Case {
    fn setup(&self) -> PoolSetup {
        let plain = PoolSetup::of(self.token0.setup(), self.token1.setup());
        PoolSetup {
            config: AmmConfig {
                trade_fee_rate: FeeRate(self.config.trade_fee_rate),
                protocol_fee_rate: FeeRate(self.config.protocol_fee_rate),
                fund_fee_rate: FeeRate(self.config.fund_fee_rate),
                creator_fee_rate: FeeRate(self.config.creator_fee_rate),
                ..config_0()
            },
            state: PoolState {
                creator_fee_on: self.pool.creator_fee_on,
                enable_creator_fee: self.pool.enable_creator_fee,
                status: self.pool.status,
                open_time: self.pool.open_time,
                protocol_fees: self.pool.protocol_fees,
                fund_fees: self.pool.fund_fees,
                creator_fees: self.pool.creator_fees,
                ..plain.state
            },
            ..plain
        }
    }

    fn direction(&self) -> Direction {
        if self.zero_for_one {
            Direction::ZeroForOne
        } else {
            Direction::OneForZero
        }
    }

    fn execute(&self, svm: &mut Svm) -> Outcome {
        svm.set_time(self.clock.epoch, self.clock.unix_timestamp);
        let pool = svm.open("vector", &self.setup());
        let direction = self.direction();
        let amounts = match direction {
            Direction::ZeroForOne => PerToken::new(self.amount_in, 0),
            Direction::OneForZero => PerToken::new(0, self.amount_in),
        };
        let user = svm.fund("trader", &pool, amounts);
        let accounts = pool.swap_accounts(&user, direction);
        let swap = swap_base_input(&accounts, self.amount_in, self.minimum_amount_out);
        if let Err(refused) = svm.send(&[swap], &[&user.keypair]) {
            return Outcome::ErrorCode(refused.code());
        }
        let state = svm.pool_state(pool.address);
        Outcome::Ok {
            received: svm.balance(accounts.output_token_account),
            input_vault: svm.balance(accounts.input_vault),
            output_vault: svm.balance(accounts.output_vault),
            protocol_fees: state.protocol_fees,
            fund_fees: state.fund_fees,
            creator_fees: state.creator_fees,
        }
    }
}

#[test]
fn the_exchange_does_what_the_official_program_did() {
    let cases: Vec<Case> = serde_json::from_str(CASES).expect("the vectors are JSON");
    assert_eq!(cases.len(), 3_000);
    let mut svm = Svm::new();
    for (index, case) in cases.iter().enumerate() {
        assert_eq!(case.execute(&mut svm), case.result, "case {index}");
    }
}
