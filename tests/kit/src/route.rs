//! Routes of two pools with a token in common, and who trades through them, as account bytes.

use cpmm::{Direction, ids};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::TwoHopAccounts;

use crate::{
    names::keypair,
    pool::{Ledger, Pool, PoolSpec},
};

/// Two pools on the chain: the first pays out the token that the second takes, and both are traded from token 0 to 1.
#[derive(Clone, Debug)]
pub struct Route {
    /// From the input to the middle token.
    pub first: Pool,
    /// From the middle to the output token.
    pub second: Pool,
}

/// Somebody with an account of each of a route's three tokens.
pub struct Trader {
    /// Signs swaps and owns the accounts.
    pub keypair: Keypair,
    /// The accounts of a swap by this trader.
    pub accounts: TwoHopAccounts,
}

impl Route {
    /// Places both pools. The second's token 0 becomes what the first's token 1 is; opening them again resets them.
    pub fn open(ledger: &mut impl Ledger, name: &str, first: &PoolSpec, second: &PoolSpec) -> Self {
        let middle = &first.tokens.token_1;
        let mut second = second.clone();
        second.tokens.token_0.program = middle.program;
        second.tokens.token_0.transfer_fee = middle.transfer_fee;
        let first = first.open(ledger, &format!("{name}, first"));
        let mut second = second.open(ledger, &format!("{name}, second"));
        second.state.mints.token_0 = first.state.mints.token_1;
        ledger.place(second.address, ids::PROGRAM_ID, second.state.encode());
        let token = &second.tokens.token_0;
        let vault = token.account(second.state.mints.token_0, ids::AUTHORITY, token.vault);
        ledger.place(second.state.vaults.token_0, token.program.id(), vault);
        Self { first, second }
    }

    /// Gives the trader of this name an account of each token, holding these amounts: input, middle, output.
    pub fn fund(&self, ledger: &mut impl Ledger, name: &str, amounts: [u64; 3]) -> Trader {
        let keypair = keypair(name);
        let accounts = self.accounts(ledger, name, keypair.pubkey(), amounts);
        Trader { keypair, accounts }
    }

    /// The accounts of a swap by `owner`, with token accounts of that owner, known by `name`, that hold these amounts.
    pub fn accounts(
        &self,
        ledger: &mut impl Ledger,
        name: &str,
        owner: Pubkey,
        [input, middle, output]: [u64; 3],
    ) -> TwoHopAccounts {
        use Direction::{OneForZero, ZeroForOne};
        let input = self
            .first
            .token_account(ledger, name, ZeroForOne, owner, input);
        let middle = self
            .first
            .token_account(ledger, name, OneForZero, owner, middle);
        let output = self
            .second
            .token_account(ledger, name, OneForZero, owner, output);
        let hop = |pool: &Pool, input, output| {
            cpmm::instruction::SwapAccounts::of_pool(
                cpmm::ExchangeIds::MAINNET,
                pool.address,
                &pool.state,
                ZeroForOne,
                owner,
                input,
                output,
            )
        };
        TwoHopAccounts {
            first: hop(&self.first, input, middle),
            second: hop(&self.second, middle, output),
        }
    }
}
