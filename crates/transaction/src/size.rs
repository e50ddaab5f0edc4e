//! Size of a transaction: the network's limit, and what makes one fit that exceeds it (pure).

use std::sync::Arc;

use cpmm::{TokenAccount, ids};
use solana_hash::Hash;
use solana_pubkey::Pubkey;

use crate::{
    lookup_table::{LookupTable, fixed_addresses},
    plan::{TokenSide, TransactionPlan},
    platform_fee::PlatformFee,
    route::Route,
    version::TransactionVersion,
};

/// A change that makes a transaction smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// No other receiver.
    WithoutReceiver,
    /// No other fee payer.
    WithoutFeePayer,
    /// No platform's fee.
    WithoutPlatformFee,
    /// A recent blockhash in place of a nonce.
    WithoutNonce,
    /// This token account is created beforehand.
    WithAccount {
        /// Its address.
        account: Pubkey,
        /// Its mint.
        mint: Pubkey,
    },
    /// Wrapped SOL is left wrapped.
    WithoutUnwrapping,
    /// Version 0, for which the service has a lookup table.
    WithVersion0,
    /// A lookup table of the service, with what every swap names and this route's configurations.
    WithLookupTable,
    /// Version 1, where the cluster takes it.
    WithVersion1,
}

impl TransactionPlan {
    /// The single changes after which the transaction fits, and leaves free what it is to.
    #[must_use]
    pub fn remedies(&self, blockhash: Hash) -> Vec<Remedy> {
        let fits = |(_, plan): &(Remedy, Self)| {
            let built = plan.transaction(blockhash);
            built.is_ok_and(|built| plan.fits(&built))
        };
        let smaller = self.smaller().into_iter().filter(fits);
        smaller.map(|(remedy, _)| remedy).collect()
    }

    fn smaller(&self) -> Vec<(Remedy, Self)> {
        let changed = |change: &dyn Fn(&mut Self)| {
            let mut plan = self.clone();
            change(&mut plan);
            plan
        };
        let mut smaller = Vec::new();
        if self.receiver.is_some() {
            let plan = changed(&|plan| plan.receiver = None);
            smaller.push((Remedy::WithoutReceiver, plan));
        }
        let user = self.route.first().payer;
        if self.fee_payer != user {
            let plan = changed(&|plan| plan.fee_payer = user);
            smaller.push((Remedy::WithoutFeePayer, plan));
        }
        smaller.extend(self.smaller_platform_fee());
        if self.nonce.is_some() {
            smaller.push((Remedy::WithoutNonce, changed(&|plan| plan.nonce = None)));
        }
        let (first, last) = (self.route.first(), self.route.last());
        if let Some(middle) = self.middle.filter(|middle| middle.account.is_none()) {
            let remedy = Remedy::WithAccount {
                account: last.input_token_account,
                mint: last.input_mint,
            };
            let plan = changed(&|plan| plan.middle = Some(present(middle, last.input_mint, user)));
            smaller.push((remedy, plan));
        }
        // A wrapped SOL account that is there makes the transaction larger where SOL comes out of it.
        if self.output.account.is_none() && last.output_mint != ids::WRAPPED_SOL {
            let owner = self.receiver.unwrap_or(user);
            let remedy = Remedy::WithAccount {
                account: last.output_token_account,
                mint: last.output_mint,
            };
            let plan = changed(&|plan| plan.output = present(self.output, last.output_mint, owner));
            smaller.push((remedy, plan));
        }
        let mints = [first.input_mint, last.output_mint];
        if self.wrap_and_unwrap_sol && mints.contains(&ids::WRAPPED_SOL) {
            let plan = changed(&|plan| plan.wrap_and_unwrap_sol = false);
            smaller.push((Remedy::WithoutUnwrapping, plan));
        }
        match (self.version, &self.lookup_table) {
            (TransactionVersion::Legacy, Some(_)) => {
                let plan = changed(&|plan| plan.version = TransactionVersion::V0);
                smaller.push((Remedy::WithVersion0, plan));
            }
            (TransactionVersion::V0, None) => {
                let plan =
                    changed(&|plan| plan.lookup_table = Some(Arc::new(table_of(&plan.route))));
                smaller.push((Remedy::WithLookupTable, plan));
            }
            _ => {}
        }
        if self.version != TransactionVersion::V1 {
            let plan = changed(&|plan| plan.version = TransactionVersion::V1);
            smaller.push((Remedy::WithVersion1, plan));
        }
        smaller
    }

    /// Without the fee; with its account there.
    fn smaller_platform_fee(&self) -> Vec<(Remedy, Self)> {
        let Some(fee) = self.platform_fee else {
            return Vec::new();
        };
        let with = |platform_fee| Self {
            platform_fee,
            ..self.clone()
        };
        let there = PlatformFee {
            is_there: true,
            ..fee
        };
        let account = Remedy::WithAccount {
            account: fee.account,
            mint: self.route.first().input_mint,
        };
        let without = (Remedy::WithoutPlatformFee, with(None));
        let created = (!fee.is_there).then(|| (account, with(Some(there))));
        [without].into_iter().chain(created).collect()
    }
}

/// The table that a service would have: what is fixed, and the configurations of this route.
pub(crate) fn table_of(route: &Route) -> LookupTable {
    let configurations = [route.first().amm_config, route.last().amm_config];
    let fixed = fixed_addresses(&route.first().exchange);
    let addresses = fixed.into_iter().chain(configurations);
    LookupTable::new(Pubkey::default(), addresses.collect())
}

const fn present(side: TokenSide, mint: Pubkey, owner: Pubkey) -> TokenSide {
    TokenSide {
        account: Some(TokenAccount {
            mint,
            owner,
            amount: 0,
            frozen: false,
        }),
        ..side
    }
}
