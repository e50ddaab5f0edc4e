//! Properties of exact outputs, two hops and other receivers, each tried on thousands of random cases.

use cpmm::{
    Amount, Clock, Direction, ids,
    instruction::{swap_base_input, swap_base_output},
};
use proptest::{prelude::*, sample::select};
use sluice_testkit::{
    names::{address, keypair},
    pool::PoolSpec,
    route::{Route, Trader},
    svm::{EPOCH, Executed, Refused, Svm, UNIX_TIMESTAMP, program},
};
use solana_account::Account;
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use std::cell::{Cell, RefCell};
use swap_guard_interface::{GuardError, NO_EXPIRY, PROGRAM_ID, TwoHopAccounts};

use super::{
    form_hostility::{CONFIG, INPUT, OUTPUT, Orders, TOKEN_PROGRAM, honest},
    forms::{Form, with},
    properties::{CASES, check, magnitude, setup, snapshot},
};

const CLOCK: Clock = Clock {
    epoch: EPOCH,
    unix_timestamp: UNIX_TIMESTAMP,
};

/// More than any swap of these properties takes.
const WEALTH: u64 = 1 << 60;

/// The exchange's code for a bound that is not met.
const EXCEEDED_SLIPPAGE: u32 = 6005;

/// Two pools with a token in common, of one configuration or of two.
#[derive(Clone, Debug)]
struct Pools {
    first: PoolSpec,
    second: PoolSpec,
    share_configuration: bool,
}

fn pools() -> impl Strategy<Value = Pools> {
    (setup(), setup(), any::<bool>()).prop_map(|(first, second, share_configuration)| Pools {
        first,
        second,
        share_configuration,
    })
}

fn form() -> impl Strategy<Value = Form> {
    select(Form::ALL.to_vec())
}

impl Pools {
    /// Opens them, or resets them, with a trader who holds these amounts: input, middle, output.
    fn open(&self, svm: &mut Svm, amounts: [u64; 3]) -> Market {
        let mut route = Route::open(svm, "route", &self.first, &self.second);
        if self.share_configuration {
            route.second.state.amm_config = route.first.state.amm_config;
            let pool = route.second.state.encode();
            svm.place(route.second.address, ids::PROGRAM_ID, pool);
        }
        let trader = route.fund(svm, "trader", amounts);
        Market { route, trader }
    }
}

struct Market {
    route: Route,
    trader: Trader,
}

impl Market {
    fn me(&self) -> Pubkey {
        self.trader.keypair.pubkey()
    }

    fn accounts(&self) -> &TwoHopAccounts {
        &self.trader.accounts
    }

    /// Input, middle and output account.
    fn own(&self) -> [Pubkey; 3] {
        let TwoHopAccounts { first, second } = self.accounts();
        [
            first.input_token_account,
            first.output_token_account,
            second.output_token_account,
        ]
    }

    /// The account that this form pays.
    fn paid(&self, form: Form) -> Pubkey {
        self.own()[if form.is_two_hops() { 2 } else { 1 }]
    }

    fn send(&self, svm: &mut Svm, instructions: &[Instruction]) -> Result<Executed, Refused> {
        svm.send(instructions, &[&self.trader.keypair])
    }

    fn build(&self, form: Form, terms: [u64; 3]) -> Instruction {
        form.build(self.accounts(), terms, &self.me())
    }

    /// Every account of a swap through both pools, as it is.
    fn state(&self, svm: &Svm) -> Vec<Account> {
        let all = self.build(Form::TwoHops, [1, 1, 0]).accounts;
        all.iter().map(|meta| svm.account(meta.pubkey)).collect()
    }

    fn exact_out(&self, svm: &Svm, setup: &PoolSpec, asked: u64) -> Option<u64> {
        let snapshot = snapshot(svm, &self.route.first, setup);
        let quote = snapshot.quote_exact_out(Direction::ZeroForOne, Amount::new(asked), &CLOCK);
        quote.ok().map(|quote| quote.amount_in.get())
    }
}

fn answer(executed: &Executed) -> u64 {
    let (program, data) = &executed.return_data;
    assert_eq!(*program, PROGRAM_ID);
    u64::from_le_bytes(data.clone().try_into().expect("eight bytes"))
}

/// P1: an exact output costs its quote to the unit and pays what was asked for; a maximum of one unit less moves nothing.
#[test]
fn an_exact_output_costs_its_quote_and_a_unit_less_moves_nothing() {
    let svm = RefCell::new(Svm::new());
    let accepted = Cell::new(0);
    let forms = select(vec![Form::ExactOut, Form::ExactOutTo]);
    check(&(pools(), magnitude(50), forms), |(pools, asked, form)| {
        let svm = &mut *svm.borrow_mut();
        let market = pools.open(svm, [WEALTH, 0, 0]);
        let [input, output, _] = market.own();
        let before = market.state(svm);
        let quoted = market.exact_out(svm, &pools.first, asked);
        let Some(quoted) = quoted.filter(|quoted| *quoted <= WEALTH) else {
            let sent = market.send(svm, &[market.build(form, [u64::MAX, asked, 0])]);
            prop_assert!(sent.is_err(), "what cannot be quoted cannot be had");
            prop_assert_eq!(market.state(svm), before);
            return Ok(());
        };
        if let Some(less) = quoted.checked_sub(1).filter(|less| *less > 0) {
            let sent = market.send(svm, &[market.build(form, [less, asked, 0])]);
            let Err(refused) = sent else {
                return Err(TestCaseError::fail("accepted for less than the quote"));
            };
            prop_assert_eq!(refused.raised_by(), ids::PROGRAM_ID);
            prop_assert_eq!(refused.code(), EXCEEDED_SLIPPAGE);
            prop_assert_eq!(market.state(svm), before);
        }
        let sent = market.send(svm, &[market.build(form, [quoted, asked, 0])]);
        let executed = sent.map_err(|refused| TestCaseError::fail(format!("{refused:?}")))?;
        prop_assert_eq!(WEALTH - svm.balance(input), quoted);
        prop_assert_eq!(svm.balance(output), asked);
        prop_assert_eq!(answer(&executed), quoted);
        accepted.set(accepted.get() + 1);
        Ok(())
    });
    assert!(accepted.get() > CASES / 4, "{accepted:?} were accepted");
}

/// P2: the input that an exact output costs pays no less of it as an exact input; one unit less of it pays less.
#[test]
fn what_an_exact_output_costs_is_the_least_that_pays_it() {
    let svm = RefCell::new(Svm::new());
    let compared = Cell::new(0);
    let forms = select(vec![Form::Swap, Form::SwapTo]);
    check(&(pools(), magnitude(50), forms), |(pools, asked, form)| {
        let svm = &mut *svm.borrow_mut();
        let market = pools.open(svm, [WEALTH, 0, 0]);
        let quoted = market.exact_out(svm, &pools.first, asked);
        let Some(quoted) = quoted.filter(|quoted| *quoted <= WEALTH) else {
            return Ok(());
        };
        let sent = market.send(svm, &[market.build(form, [quoted, asked, 0])]);
        prop_assert!(sent.is_ok(), "{:?}", sent.err());
        prop_assert!(svm.balance(market.paid(form)) >= asked);
        let market = pools.open(svm, [WEALTH, 0, 0]);
        if quoted > 1 {
            let sent = market.send(svm, &[market.build(form, [quoted - 1, asked, 0])]);
            prop_assert!(sent.is_err(), "one unit less paid as much");
            prop_assert_eq!(svm.balance(market.paid(form)), 0);
        }
        compared.set(compared.get() + 1);
        Ok(())
    });
    assert!(compared.get() > CASES / 4, "{compared:?} were compared");
}

/// Both hops without the guard, the second with what the first delivered. Nothing where either fails or pays nothing.
fn direct(svm: &mut Svm, market: &Market, amount_in: u64) -> Option<()> {
    let [_, middle, output] = market.own();
    let TwoHopAccounts { first, second } = market.accounts();
    let mut hop = |accounts, amount: u64, paid| {
        let before = svm.balance(paid);
        let swap = swap_base_input(accounts, amount, 0);
        market.send(svm, &[swap]).ok()?;
        Some(svm.balance(paid) - before).filter(|received| *received > 0)
    };
    let delivered = hop(first, amount_in, middle)?;
    hop(second, delivered, output).map(drop)
}

/// P3: two hops leave every account as two direct swaps leave it.
#[test]
fn two_hops_leave_every_account_as_two_direct_swaps_do() {
    let svm = RefCell::new(Svm::new());
    let accepted = Cell::new(0);
    let forms = select(vec![Form::TwoHops, Form::TwoHopsTo]);
    check(
        &(pools(), magnitude(50), forms, 0..3_u64),
        |(pools, amount_in, form, held)| {
            let svm = &mut *svm.borrow_mut();
            let amounts = [amount_in, held, held];
            let market = pools.open(svm, amounts);
            let before = market.state(svm);
            let sent = market.send(svm, &[market.build(form, [amount_in, 1, 0])]);
            let guarded = market.state(svm);
            let market = pools.open(svm, amounts);
            let direct = direct(svm, &market, amount_in);
            prop_assert_eq!(sent.is_ok(), direct.is_some(), "{:?}", sent.err());
            if direct.is_some() {
                prop_assert_eq!(guarded, market.state(svm));
                prop_assert_eq!(svm.balance(market.own()[1]), held, "dust");
                accepted.set(accepted.get() + 1);
            } else {
                prop_assert_eq!(guarded, before);
            }
            Ok(())
        },
    );
    assert!(accepted.get() > CASES / 10, "{accepted:?} were accepted");
}

/// Whether two hostile pools, or the first alone, keep every bound that is compared. Of the input account the balance alone
/// is: that its owner changes is no bound.
fn keeps_bounds(form: Form, [spent, asked]: [u64; 2], [first, second]: [Orders; 2]) -> bool {
    let calls_nothing = |orders: Orders| orders.called == 0;
    let keeps = |orders: Orders, place| orders.heir.is_none() || orders.inherited != place;
    let paid = |orders: Orders| i128::from(orders.pay) - i128::from(orders.drain);
    if !form.is_two_hops() {
        return first.take <= spent
            && paid(first) >= i128::from(asked)
            && calls_nothing(first)
            && keeps(first, OUTPUT);
    }
    first.take <= spent
        && paid(first) > 0
        && i128::from(second.take) <= paid(first)
        && paid(second) >= i128::from(asked)
        && [first, second].into_iter().all(calls_nothing)
        && keeps(first, OUTPUT)
        && keeps(second, INPUT)
        && keeps(second, OUTPUT)
}

fn orders() -> impl Strategy<Value = Orders> {
    // Small numbers, so that orders and wishes meet and miss each other by a unit.
    let heir = prop_oneof![6 => Just(None), 1 => Just(Some(address("heir")))];
    // The guard itself, which stands in the configuration's place, or the token program, which knows no such instruction.
    let called = prop_oneof![12 => Just(0), 1 => select(vec![CONFIG, TOKEN_PROGRAM])];
    (
        0..8_u64,
        0..8_u64,
        prop_oneof![3 => Just(0), 1 => 0..4_u64],
        heir,
        select(vec![INPUT, OUTPUT]),
        called,
    )
        .prop_map(|(take, pay, drain, heir, inherited, called)| Orders {
            drain,
            heir,
            inherited,
            called,
            ..honest(take, pay)
        })
}

/// P4: whatever the exchange does, a success keeps bounds, and owners but the input's; nothing else is refused.
#[test]
fn whatever_the_exchange_does_in_either_hop_a_success_keeps_every_bound() {
    const HELD: u64 = 100;
    let svm = RefCell::new(Svm::with_exchange(&program("hostile_exchange")));
    let accepted = Cell::new(0);
    let cases = (form(), [1..8_u64, 1..8_u64], [orders(), orders()]);
    check(&cases, |(form, [spent, asked], orders)| {
        let svm = &mut *svm.borrow_mut();
        let pools = Pools {
            first: PoolSpec::plain(),
            second: PoolSpec::plain(),
            share_configuration: false,
        };
        let market = pools.open(svm, [HELD; 3]);
        let addresses = [market.route.first.address, market.route.second.address];
        for (pool, orders) in addresses.into_iter().zip(orders) {
            svm.place(pool, ids::PROGRAM_ID, orders.encode());
        }
        let before = market.state(svm);
        let configurations: &[usize] = if form.is_two_hops() { &[3, 11] } else { &[3] };
        let swap = configurations
            .iter()
            .fold(market.build(form, [spent, asked, 0]), |swap, at| {
                with(swap, *at, PROGRAM_ID)
            });
        let sent = market.send(svm, &[swap]);
        prop_assert_eq!(sent.is_ok(), keeps_bounds(form, [spent, asked], orders));
        if sent.is_err() {
            prop_assert_eq!(market.state(svm), before);
            return Ok(());
        }
        let [input, middle, _] = market.own();
        prop_assert!(HELD - svm.balance(input) <= spent);
        prop_assert!(svm.balance(middle) >= HELD);
        prop_assert!(svm.balance(market.paid(form)) - HELD >= asked);
        // The input account alone may be another's now.
        for account in &market.own()[1..] {
            let (now, me) = (svm.account(*account).data, market.me());
            prop_assert_eq!(&now[32..64], me.as_ref());
        }
        accepted.set(accepted.get() + 1);
        Ok(())
    });
    assert!(accepted.get() > CASES / 20, "{accepted:?} were accepted");
}

/// P5: paying the user as the stated receiver is the plain form: same accounts, return data and events, or same refusal.
#[test]
fn paying_the_user_as_receiver_is_the_plain_form() {
    let svm = RefCell::new(Svm::new());
    let pairs = select(vec![
        (Form::Swap, Form::SwapTo),
        (Form::ExactOut, Form::ExactOutTo),
        (Form::TwoHops, Form::TwoHopsTo),
    ]);
    let accepted = Cell::new(0);
    let cases = (pools(), pairs, magnitude(50), magnitude(20));
    check(&cases, |(pools, (plain, to), offered, asked)| {
        let svm = &mut *svm.borrow_mut();
        let mut run = |form: Form| {
            let market = pools.open(svm, [WEALTH, 7, 7]);
            let sent = market.send(svm, &[market.build(form, [offered, asked, 0])]);
            let ended = sent
                .map(|executed| (executed.return_data, executed.events))
                .map_err(|refused| format!("{:?} by {}", refused.error, refused.raised_by()));
            (ended, market.state(svm))
        };
        let (ended, state) = run(plain);
        accepted.set(accepted.get() + u32::from(ended.is_ok()));
        prop_assert_eq!((ended, state), run(to));
        Ok(())
    });
    assert!(accepted.get() > CASES / 10, "{accepted:?} were accepted");
}

/// P6: a swap passes in its expiry slot and before, and always without one.
#[test]
fn every_form_passes_up_to_its_expiry_slot_and_not_after() {
    let svm = RefCell::new(Svm::new());
    let slot = || prop_oneof![0..8_u64, any::<u64>(), Just(u64::MAX)];
    check(&(form(), slot(), slot()), |(form, now, expiry)| {
        let svm = &mut *svm.borrow_mut();
        svm.set_slot(now);
        let pools = Pools {
            first: PoolSpec::plain(),
            second: PoolSpec::plain(),
            share_configuration: true,
        };
        let market = pools.open(svm, [WEALTH, 0, 0]);
        let before = market.state(svm);
        let sent = market.send(svm, &[market.build(form, [1_000_000, 1_000, expiry])]);
        let in_time = expiry == NO_EXPIRY || now <= expiry;
        match sent {
            Ok(_) => prop_assert!(in_time),
            Err(refused) => {
                prop_assert!(!in_time, "{refused:?}");
                prop_assert_eq!(refused.code(), GuardError::Expired.code());
                prop_assert_eq!(refused.raised_by(), PROGRAM_ID);
                prop_assert_eq!(market.state(svm), before);
            }
        }
        Ok(())
    });
}

/// A transfer of the trader's tokens, checked as Token-2022 wants it where a mint has a fee.
fn transfer(program: Pubkey, mint: Pubkey, [from, to]: [Pubkey; 2], by: Pubkey) -> Instruction {
    /// `TransferChecked`, of five units of a token with six decimals.
    const DATA: [u8; 10] = [12, 5, 0, 0, 0, 0, 0, 0, 0, 6];
    Instruction {
        program_id: program,
        accounts: vec![
            AccountMeta::new(from, false),
            AccountMeta::new_readonly(mint, false),
            AccountMeta::new(to, false),
            AccountMeta::new_readonly(by, true),
        ],
        data: DATA.to_vec(),
    }
}

/// P8: transfers of the user's own tokens before and after a swap change nothing of what it measures.
#[test]
fn transfers_around_a_swap_change_nothing() {
    let svm = RefCell::new(Svm::new());
    let accepted = Cell::new(0);
    let cases = (
        pools(),
        form(),
        magnitude(40),
        [any::<bool>(), any::<bool>()],
    );
    check(&cases, |(pools, form, offered, [before, after])| {
        let svm = &mut *svm.borrow_mut();
        let run = |svm: &mut Svm, is_surrounded: bool| {
            let market = pools.open(svm, [WEALTH, WEALTH, WEALTH]);
            let other = keypair("other").pubkey();
            let others = market.route.accounts(svm, "other", other, [0; 3]);
            let theirs = [
                others.first.input_token_account,
                others.first.output_token_account,
                others.second.output_token_account,
            ];
            let TwoHopAccounts { first, second } = market.accounts();
            let tokens = [
                (first.input_token_program, first.input_mint),
                (first.output_token_program, first.output_mint),
                (second.output_token_program, second.output_mint),
            ];
            let away = || {
                tokens.into_iter().zip(market.own()).zip(theirs).map(
                    |(((program, mint), own), theirs)| {
                        transfer(program, mint, [own, theirs], market.me())
                    },
                )
            };
            let swap = market.build(form, [offered, 1 + offered % 2, 0]);
            let mut instructions: Vec<Instruction> = Vec::new();
            if is_surrounded && before {
                instructions.extend(away());
            }
            instructions.push(swap);
            if is_surrounded && after {
                instructions.extend(away());
            }
            market
                .send(svm, &instructions)
                .map(|executed| executed.events)
                .map_err(|refused| format!("{:?}", refused.error))
        };
        let alone = run(svm, false);
        accepted.set(accepted.get() + u32::from(alone.is_ok()));
        prop_assert_eq!(alone, run(svm, true));
        Ok(())
    });
    assert!(accepted.get() > CASES / 10, "{accepted:?} were accepted");
}

/// The direct exchange refuses what the guard's exact output is refused for by it: the bound is one and the same.
#[test]
fn the_exchange_and_the_guard_bound_an_exact_output_alike() {
    let mut svm = Svm::new();
    let pools = Pools {
        first: PoolSpec::plain(),
        second: PoolSpec::plain(),
        share_configuration: false,
    };
    let market = pools.open(&mut svm, [WEALTH, 0, 0]);
    let quoted = market.exact_out(&svm, &pools.first, 1_000_000);
    let quoted = quoted.expect("a plain pool");
    for (maximum, is_enough) in [(quoted, true), (quoted - 1, false)] {
        let market = pools.open(&mut svm, [WEALTH, 0, 0]);
        let direct = swap_base_output(&market.accounts().first, maximum, 1_000_000);
        assert_eq!(market.send(&mut svm, &[direct]).is_ok(), is_enough);
        let market = pools.open(&mut svm, [WEALTH, 0, 0]);
        let guarded = market.build(Form::ExactOut, [maximum, 1_000_000, 0]);
        assert_eq!(market.send(&mut svm, &[guarded]).is_ok(), is_enough);
    }
}
