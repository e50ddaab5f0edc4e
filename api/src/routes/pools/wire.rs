//! Pool on the wire: reserves, price, fees, extensions of its mints, and whether the chain would swap through it now.

use cpmm::{Amount, FeeRate, Mint, PerToken};
use serde::Serialize;
use sluice_market::PoolView;
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use super::price::price;
use crate::extract::{Address, Digits, Extensions};

/// A pool, as of the slot of the answer. Amounts are smallest units.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    pool: Address,
    /// The two tokens, the mint with the smaller address first.
    tokens: [PoolToken; 2],
    /// What one whole first token is worth in whole second ones by the reserves, before every fee: decimal digits, rounded
    /// down to twelve of them. Null where a reserve is empty.
    #[schema(required)]
    price: Option<String>,
    fees: PoolFees,
    /// Unix time from which it swaps, seconds.
    open_time: u64,
    /// What the exchange has switched off, as it stores it: bit 0 deposits, bit 1 withdrawals, bit 2 swaps.
    status: u8,
    /// Whether the chain would swap through it now.
    is_tradable: bool,
    /// Why not; null where it would.
    #[schema(required)]
    reason: Option<String>,
    /// Account of its fee configuration.
    config: Address,
    /// Who opened it, and earns its creator fee.
    creator: Address,
}

/// One of the two tokens of a pool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PoolToken {
    mint: Address,
    token_program: Address,
    decimals: u8,
    extensions: Extensions,
    vault: Address,
    /// What is traded with: the vault's balance less the fees that are not collected yet. Null where it holds less than these.
    #[schema(required)]
    reserve: Option<u64>,
    #[schema(required)]
    reserve_string: Option<Digits>,
}

/// Fees of a pool, in millionths.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PoolFees {
    /// Of the input.
    trade_ppm: u64,
    /// The protocol's part of the trade fee.
    protocol_ppm: u64,
    /// The fund's part of the trade fee.
    fund_ppm: u64,
    /// The creator's, beside the trade fee; 0 where the pool takes none.
    creator_ppm: u64,
}

impl Pool {
    /// The pool as the view shows it.
    #[must_use]
    pub fn new(view: &PoolView) -> Self {
        let (snapshot, pool) = (&view.snapshot, &view.snapshot.pool);
        let reserves = snapshot.reserves().ok();
        let refusal = snapshot.check_tradable(&view.clock).err();
        let of = |amounts: Option<PerToken<Amount>>, choose: fn(&PerToken<Amount>) -> Amount| {
            amounts.map(|amounts| choose(&amounts).get())
        };
        let reserve_0 = of(reserves, |reserves| reserves.token_0);
        let reserve_1 = of(reserves, |reserves| reserves.token_1);
        let both = reserve_0.zip(reserve_1);
        let creator_fee = if pool.enable_creator_fee {
            snapshot.config.creator_fee_rate
        } else {
            FeeRate::ZERO
        };
        Self {
            pool: Address::new(&view.address),
            tokens: [
                PoolToken::new(
                    &pool.mints.token_0,
                    &pool.token_programs.token_0,
                    &snapshot.mints.token_0,
                    &pool.vaults.token_0,
                    reserve_0,
                ),
                PoolToken::new(
                    &pool.mints.token_1,
                    &pool.token_programs.token_1,
                    &snapshot.mints.token_1,
                    &pool.vaults.token_1,
                    reserve_1,
                ),
            ],
            price: both.and_then(|(token_0, token_1)| {
                let mints = &snapshot.mints;
                let decimals = PerToken::new(mints.token_0.decimals, mints.token_1.decimals);
                price(PerToken::new(token_0, token_1), decimals)
            }),
            fees: PoolFees {
                trade_ppm: snapshot.config.trade_fee_rate.0,
                protocol_ppm: snapshot.config.protocol_fee_rate.0,
                fund_ppm: snapshot.config.fund_fee_rate.0,
                creator_ppm: creator_fee.0,
            },
            open_time: pool.open_time,
            status: pool.status,
            is_tradable: refusal.is_none(),
            reason: refusal.map(|refusal| refusal.to_string()),
            config: Address::new(&pool.amm_config),
            creator: Address::new(&pool.pool_creator),
        }
    }
}

impl PoolToken {
    fn new(
        address: &Pubkey,
        token_program: &Pubkey,
        mint: &Mint,
        vault: &Pubkey,
        reserve: Option<u64>,
    ) -> Self {
        Self {
            mint: Address::new(address),
            token_program: Address::new(token_program),
            decimals: mint.decimals,
            extensions: Extensions::of(mint),
            vault: Address::new(vault),
            reserve,
            reserve_string: reserve.map(Digits),
        }
    }
}
