//! Pools of a case: one, or two with a token in common.

use cpmm::{Direction, ExchangeIds, TokenAccount, ids, instruction::SwapAccounts};
use sluice_testkit::{
    pool::{Pool, PoolSpec},
    svm::Svm,
};
use sluice_transaction::Route;
use solana_pubkey::Pubkey;

use super::{
    case::{Asset, Case, Form, RESERVE},
    place_wrapped,
};

/// A pool, and which way the wallet swaps.
type Hop = (Pool, Direction);

/// The pools that a case goes through.
pub(super) struct Pools {
    first: Hop,
    second: Option<Hop>,
    form: Form,
}

impl Pools {
    /// Places them.
    pub(super) fn open(svm: &mut Svm, case: Case) -> Self {
        let form = case.form;
        let Some((middle, _)) = form.middle() else {
            let first = open(svm, "pool", case.input, case.output);
            let second = None;
            return Self {
                first,
                second,
                form,
            };
        };
        let first = open(svm, "pool", case.input, middle);
        let (mut pool, direction) = open(svm, "second pool", middle, case.output);
        if middle != Asset::Sol {
            join(svm, &first, &mut pool, direction);
        }
        let second = Some((pool, direction));
        Self {
            first,
            second,
            form,
        }
    }

    /// The pool that takes the input.
    pub(super) const fn first(&self) -> (&Pool, Direction) {
        (&self.first.0, self.first.1)
    }

    /// The pool that pays the output.
    pub(super) fn last(&self) -> (&Pool, Direction) {
        let (pool, direction) = self.second.as_ref().unwrap_or(&self.first);
        (pool, *direction)
    }

    /// The accounts of the swap.
    pub(super) fn route(
        &self,
        user: Pubkey,
        input: Pubkey,
        middle: Option<Pubkey>,
        output: Pubkey,
    ) -> Route {
        let hop = |(pool, direction): (&Pool, Direction), input, output| {
            SwapAccounts::of_pool(
                ExchangeIds::MAINNET,
                pool.address,
                &pool.state,
                direction,
                user,
                input,
                output,
            )
        };
        match (self.form, middle) {
            (Form::TwoHops(..), Some(middle)) => Route::two_hops(
                hop(self.first(), input, middle),
                hop(self.last(), middle, output),
            ),
            (Form::ExactOut, _) => Route::ExactOut(hop(self.first(), input, output)),
            _ => Route::ExactIn(hop(self.first(), input, output)),
        }
    }
}

/// Opens a pool of two assets. SOL is always the first token, because its mint's address is small.
fn open(svm: &mut Svm, name: &str, input: Asset, output: Asset) -> Hop {
    let (first, second, direction) = if output == Asset::Sol {
        (output, input, Direction::OneForZero)
    } else {
        (input, output, Direction::ZeroForOne)
    };
    let setup = PoolSpec::of(first.token(), second.token());
    let mut pool = svm.open(name, &setup);
    if first == Asset::Sol {
        pool.wrap_first(svm);
        let vault = TokenAccount {
            mint: ids::WRAPPED_SOL,
            owner: ids::AUTHORITY,
            amount: RESERVE,
            frozen: false,
        };
        place_wrapped(svm, pool.state.vaults.token_0, &vault);
    }
    (pool, direction)
}

/// Makes what the second pool takes be what the first pays.
fn join(svm: &mut Svm, first: &Hop, second: &mut Pool, direction: Direction) {
    let (first, way) = first;
    let mint = way.output(&first.state.mints);
    let (token, place) = match direction {
        Direction::ZeroForOne => (&second.tokens.token_0, &mut second.state.mints.token_0),
        Direction::OneForZero => (&second.tokens.token_1, &mut second.state.mints.token_1),
    };
    *place = mint;
    let vault = token.account(mint, ids::AUTHORITY, RESERVE);
    let program = token.program.id();
    svm.place(direction.input(&second.state.vaults), program, vault);
    svm.place(second.address, ids::PROGRAM_ID, second.state.encode());
}
