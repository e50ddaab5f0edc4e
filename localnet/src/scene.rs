//! Initial state of a localnet's chain: tokens, pools, and wallets that own some.
//!
//! Every key is derived from a name, so that addresses in a transcript, a bookmark or a script hold
//! from one run to the next.

use cpmm::{
    AmmConfig, FeeRate, Mint, PerToken, PoolState, TokenAccount, TokenAccountKind, TokenProgram,
    TransferFee, TransferFeeConfig, ids, observation_account,
};
use sha2::{Digest, Sha256};
use solana_keypair::Keypair;
use solana_pubkey::{Pubkey, pubkey};
use solana_signer::Signer;
use swap_guard_interface::associated_token_address;

use crate::genesis::{GenesisAccount, rent_exempt};

/// Lamports in one SOL.
pub const LAMPORTS_PER_SOL: u64 = 1_000_000_000;

/// What the demo wallet owns at the start.
const WALLET_LAMPORTS: u64 = 1_000 * LAMPORTS_PER_SOL;

/// Liquidity that `initialize` never hands out, smallest units of the liquidity token.
const LOCKED_LIQUIDITY: u64 = 100;

/// Decimals of every liquidity token of the exchange.
const LP_DECIMALS: u8 = 9;

/// Transfer fee of the fee-bearing mint, basis points: large enough that a quote which forgets it is
/// refused by the guard.
pub const TRANSFER_FEE_BASIS_POINTS: u16 = 100;

/// The exchange's published figures for fee configuration 0.
const TRADE_FEE_RATE: FeeRate = FeeRate(2_500);
const PROTOCOL_FEE_RATE: FeeRate = FeeRate(120_000);
const FUND_FEE_RATE: FeeRate = FeeRate(40_000);
const CREATOR_FEE_RATE: FeeRate = FeeRate(500);
const CREATE_POOL_FEE: u64 = 150_000_000;

const SLOT_HASHES: Pubkey = pubkey!("SysvarS1otHashes111111111111111111111111111");
const SYSVAR_OWNER: Pubkey = pubkey!("Sysvar1111111111111111111111111111111111111");

/// Length of the sysvar: a count and 512 pairs of slot and hash, bytes.
const SLOT_HASHES_LEN: usize = 8 + 512 * (8 + 32);

/// A mint of the localnet.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Short name, for people.
    pub symbol: &'static str,
    /// Its address.
    pub mint: Pubkey,
    /// Decimal places of one whole token.
    pub decimals: u8,
    /// The token program that owns the mint.
    pub program: TokenProgram,
    /// Whether transfers withhold [`TRANSFER_FEE_BASIS_POINTS`].
    pub has_transfer_fee: bool,
}

impl Token {
    /// An amount of whole tokens in smallest units.
    #[must_use]
    pub const fn units(&self, whole: u64) -> u64 {
        whole * 10u64.pow(self.decimals as u32)
    }

    /// An amount of smallest units as a person writes it.
    #[must_use]
    pub fn show(&self, units: u64) -> String {
        let one = 10u64.pow(u32::from(self.decimals));
        let width = usize::from(self.decimals);
        let fraction = format!("{:0width$}", units % one);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction} {}", units / one, self.symbol)
    }

    /// The associated token account of a wallet.
    #[must_use]
    pub fn account_of(&self, wallet: &Pubkey) -> Pubkey {
        associated_token_address(wallet, &self.mint, &self.program.id())
    }

    const fn account_kind(&self) -> TokenAccountKind {
        if self.has_transfer_fee {
            TokenAccountKind::WithTransferFee
        } else {
            TokenAccountKind::Plain
        }
    }
}

/// A pool of the localnet.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its address.
    pub address: Pubkey,
    /// Its tokens, ordered by mint address as the exchange demands.
    pub tokens: PerToken<Token>,
    state: PoolState,
    reserves: PerToken<u64>,
}

/// The mints, pools and wallets.
#[derive(Debug)]
pub struct Scene {
    /// The wallet that swaps; authority of every mint but wrapped SOL.
    pub wallet: Keypair,
    /// A nonce account that the wallet may advance.
    pub nonce: Pubkey,
    /// Receives the tokens of genesis; pays for nothing.
    pub treasury: Pubkey,
    /// Wrapped SOL, which the validator itself puts into genesis.
    pub sol: Token,
    /// The six-decimals token that prices are read in.
    pub usd: Token,
    /// A plain token of nine decimals.
    pub alfa: Token,
    /// A plain token of six decimals.
    pub beta: Token,
    /// A Token-2022 mint with a transfer fee.
    pub levy: Token,
    /// SOL/USDL, ALFA/BETA and LEVY/USDL, in this order.
    pub pools: [Pool; 3],
}

impl Scene {
    /// The scene, the same one every time.
    #[must_use]
    pub fn new() -> Self {
        let sol = Token {
            symbol: "SOL",
            mint: ids::WRAPPED_SOL,
            decimals: 9,
            program: TokenProgram::Spl,
            has_transfer_fee: false,
        };
        let usd = plain_token("USDL", 6);
        let alfa = plain_token("ALFA", 9);
        let beta = plain_token("BETA", 6);
        let levy = Token {
            program: TokenProgram::Token2022,
            has_transfer_fee: true,
            ..plain_token("LEVY", 6)
        };
        let pools = [
            Pool::new((sol, 10_000), (usd, 1_500_000), false),
            // The one pool with a creator fee, so that a quote which forgets it is refused.
            Pool::new((alfa, 5_000_000), (beta, 2_000_000), true),
            Pool::new((levy, 3_000_000), (usd, 600_000), false),
        ];
        Self {
            wallet: key("wallet"),
            nonce: key("nonce").pubkey(),
            treasury: key("treasury").pubkey(),
            sol,
            usd,
            alfa,
            beta,
            levy,
            pools,
        }
    }

    /// Everything that genesis must hold beside what the validator puts there.
    #[must_use]
    pub fn accounts(&self) -> Vec<GenesisAccount> {
        let mut accounts = vec![
            GenesisAccount {
                address: self.wallet.pubkey(),
                lamports: WALLET_LAMPORTS,
                owner: Pubkey::default(),
                data: Vec::new(),
            },
            amm_config(),
            create_pool_fee_receiver(),
            slot_hashes(),
            GenesisAccount::nonce(self.nonce, &self.wallet.pubkey()),
        ];
        for token in [&self.usd, &self.alfa, &self.beta, &self.levy] {
            accounts.push(mint(token, &self.wallet.pubkey()));
        }
        for pool in &self.pools {
            accounts.extend(pool.accounts());
        }
        // No BETA, no LEVY and no wrapped SOL: the transactions of the demo create those accounts.
        for (token, whole) in [(&self.usd, 50_000), (&self.alfa, 50_000)] {
            accounts.push(token_account(
                token.account_of(&self.wallet.pubkey()),
                token,
                self.wallet.pubkey(),
                token.units(whole),
            ));
        }
        accounts
    }
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    fn new(one: (Token, u64), other: (Token, u64), creator_fee: bool) -> Self {
        let (first, second) = if one.0.mint < other.0.mint {
            (one, other)
        } else {
            (other, one)
        };
        let tokens = PerToken::new(first.0, second.0);
        let reserves = PerToken::new(first.0.units(first.1), second.0.units(second.1));
        let addresses = PoolAddresses::of(&tokens.token_0.mint, &tokens.token_1.mint);
        let state = PoolState {
            amm_config: ids::AMM_CONFIG_0,
            pool_creator: key("liquidity provider").pubkey(),
            vaults: addresses.vaults,
            lp_mint: addresses.lp_mint,
            mints: PerToken::new(tokens.token_0.mint, tokens.token_1.mint),
            token_programs: PerToken::new(tokens.token_0.program.id(), tokens.token_1.program.id()),
            observation: addresses.observation,
            auth_bump: ids::AUTHORITY_BUMP,
            status: 0,
            lp_mint_decimals: LP_DECIMALS,
            mint_decimals: PerToken::new(tokens.token_0.decimals, tokens.token_1.decimals),
            lp_supply: liquidity(reserves),
            // Fees that are not collected yet stand in the vaults but are not part of the
            // reserves: a quote that takes the vaults for the reserves is wrong here.
            protocol_fees: PerToken::new(tokens.token_0.units(3), tokens.token_1.units(2)),
            fund_fees: PerToken::new(tokens.token_0.units(1), 0),
            // Long past: the validator's clock is the machine's.
            open_time: 1,
            recent_epoch: 0,
            creator_fee_on: 0,
            enable_creator_fee: creator_fee,
            creator_fees: PerToken::default(),
        };
        Self {
            address: addresses.pool,
            tokens,
            state,
            reserves,
        }
    }

    /// `SOL/USDL`, in the order of the exchange.
    #[must_use]
    pub fn name(&self) -> String {
        format!(
            "{}/{}",
            self.tokens.token_0.symbol, self.tokens.token_1.symbol
        )
    }

    fn accounts(&self) -> [GenesisAccount; 6] {
        let (state, fees) = (&self.state, &self.state.protocol_fees);
        let vault = |address, token: &Token, reserve: u64, fees: u64| {
            token_account(address, token, ids::AUTHORITY, reserve + fees)
        };
        let circulating = state.lp_supply - LOCKED_LIQUIDITY;
        let lp_token = Token {
            symbol: "LP",
            mint: state.lp_mint,
            decimals: LP_DECIMALS,
            program: TokenProgram::Spl,
            has_transfer_fee: false,
        };
        [
            program_account(self.address, state.encode()),
            program_account(state.observation, observation_account(&self.address)),
            vault(
                state.vaults.token_0,
                &self.tokens.token_0,
                self.reserves.token_0,
                fees.token_0 + state.fund_fees.token_0,
            ),
            vault(
                state.vaults.token_1,
                &self.tokens.token_1,
                self.reserves.token_1,
                fees.token_1 + state.fund_fees.token_1,
            ),
            GenesisAccount::rent_exempt(
                state.lp_mint,
                ids::SPL_TOKEN,
                Mint::plain(LP_DECIMALS, circulating).encode(&ids::AUTHORITY),
            ),
            token_account(
                lp_token.account_of(&state.pool_creator),
                &lp_token,
                state.pool_creator,
                circulating,
            ),
        ]
    }
}

/// The addresses that the exchange derives for a pool of configuration 0.
#[derive(Clone, Copy, Debug)]
pub struct PoolAddresses {
    /// The pool.
    pub pool: Pubkey,
    /// Its two vaults.
    pub vaults: PerToken<Pubkey>,
    /// Mint of its liquidity token.
    pub lp_mint: Pubkey,
    /// Its price observations.
    pub observation: Pubkey,
}

impl PoolAddresses {
    /// Derives the addresses; `mint_0` must be the smaller of the two mints.
    #[must_use]
    pub fn of(mint_0: &Pubkey, mint_1: &Pubkey) -> Self {
        let derive = |seeds: &[&[u8]]| Pubkey::find_program_address(seeds, &ids::PROGRAM_ID).0;
        let pool = derive(&[
            b"pool",
            ids::AMM_CONFIG_0.as_ref(),
            mint_0.as_ref(),
            mint_1.as_ref(),
        ]);
        let vault = |mint: &Pubkey| derive(&[b"pool_vault", pool.as_ref(), mint.as_ref()]);
        Self {
            pool,
            vaults: PerToken::new(vault(mint_0), vault(mint_1)),
            lp_mint: derive(&[b"pool_lp_mint", pool.as_ref()]),
            observation: derive(&[b"observation", pool.as_ref()]),
        }
    }
}

fn key(name: &str) -> Keypair {
    Keypair::new_from_array(Sha256::digest(format!("sluice localnet: {name}")).into())
}

fn plain_token(symbol: &'static str, decimals: u8) -> Token {
    Token {
        symbol,
        mint: key(symbol).pubkey(),
        decimals,
        program: TokenProgram::Spl,
        has_transfer_fee: false,
    }
}

/// The exchange's measure of liquidity: the geometric mean of the reserves, rounded down.
fn liquidity(reserves: PerToken<u64>) -> u64 {
    let product = u128::from(reserves.token_0) * u128::from(reserves.token_1);
    u64::try_from(product.isqrt()).unwrap_or(u64::MAX)
}

/// The sysvar of recent slots, empty. The validator resolves the address tables of every version-0
/// transaction, even of one without tables, at its rooted bank and needs this sysvar for it. At genesis
/// there is none, so without this account it drops every such transaction until slot 1 is rooted, which
/// takes 13 seconds.
fn slot_hashes() -> GenesisAccount {
    GenesisAccount::rent_exempt(SLOT_HASHES, SYSVAR_OWNER, vec![0; SLOT_HASHES_LEN])
}

fn amm_config() -> GenesisAccount {
    let seeds: &[&[u8]] = &[b"amm_config", &0u16.to_be_bytes()];
    let (address, bump) = Pubkey::find_program_address(seeds, &ids::PROGRAM_ID);
    let owner = key("exchange admin").pubkey();
    let config = AmmConfig {
        bump,
        disable_create_pool: false,
        index: 0,
        trade_fee_rate: TRADE_FEE_RATE,
        protocol_fee_rate: PROTOCOL_FEE_RATE,
        fund_fee_rate: FUND_FEE_RATE,
        create_pool_fee: CREATE_POOL_FEE,
        protocol_owner: owner,
        fund_owner: owner,
        creator_fee_rate: CREATOR_FEE_RATE,
    };
    program_account(address, config.encode())
}

fn create_pool_fee_receiver() -> GenesisAccount {
    let account = TokenAccount {
        mint: ids::WRAPPED_SOL,
        owner: key("exchange admin").pubkey(),
        amount: 0,
        frozen: false,
    };
    native_account(ids::CREATE_POOL_FEE_RECEIVER, &account)
}

fn mint(token: &Token, authority: &Pubkey) -> GenesisAccount {
    let schedule = TransferFee {
        epoch: 0,
        maximum_fee: u64::MAX,
        basis_points: TRANSFER_FEE_BASIS_POINTS,
    };
    let mint = Mint {
        transfer_fee: token.has_transfer_fee.then_some(TransferFeeConfig {
            older: schedule,
            newer: schedule,
        }),
        ..Mint::plain(token.decimals, token.units(10_000_000))
    };
    GenesisAccount::rent_exempt(token.mint, token.program.id(), mint.encode(authority))
}

fn token_account(address: Pubkey, token: &Token, owner: Pubkey, amount: u64) -> GenesisAccount {
    let account = TokenAccount {
        mint: token.mint,
        owner,
        amount,
        frozen: false,
    };
    if token.mint == ids::WRAPPED_SOL {
        return native_account(address, &account);
    }
    GenesisAccount::rent_exempt(
        address,
        token.program.id(),
        account.encode(token.account_kind()),
    )
}

/// A wrapped-SOL account owns its balance in lamports, on top of the rent-exempt reserve.
fn native_account(address: Pubkey, account: &TokenAccount) -> GenesisAccount {
    let reserve = rent_exempt(cpmm::TOKEN_ACCOUNT_LEN);
    GenesisAccount {
        address,
        lamports: reserve + account.amount,
        owner: ids::SPL_TOKEN,
        data: account.encode(TokenAccountKind::Native { reserve }),
    }
}

fn program_account(address: Pubkey, data: Vec<u8>) -> GenesisAccount {
    GenesisAccount::rent_exempt(address, ids::PROGRAM_ID, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_addresses_do_not_change_from_run_to_run() {
        let (one, two) = (Scene::new(), Scene::new());
        assert_eq!(one.wallet.pubkey(), two.wallet.pubkey());
        assert_eq!(one.accounts(), two.accounts());
    }

    #[test]
    fn no_address_is_used_twice() {
        let mut addresses: Vec<_> = Scene::new().accounts().iter().map(|a| a.address).collect();
        let count = addresses.len();
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), count);
    }

    #[test]
    fn pool_tokens_are_ordered_as_the_exchange_demands() {
        for pool in &Scene::new().pools {
            assert!(pool.tokens.token_0.mint < pool.tokens.token_1.mint);
        }
    }

    #[test]
    fn vaults_hold_reserves_and_uncollected_fees() {
        let scene = Scene::new();
        let accounts = scene.accounts();
        for pool in &scene.pools {
            let vault = accounts
                .iter()
                .find(|account| account.address == pool.state.vaults.token_0)
                .expect("the vault is in genesis");
            let held = TokenAccount::decode(&vault.data).expect("a token account");
            let fees = pool.state.protocol_fees.token_0 + pool.state.fund_fees.token_0;
            assert_eq!(held.amount - fees, pool.reserves.token_0);
            assert_eq!(held.owner, ids::AUTHORITY);
        }
    }

    #[test]
    fn amounts_are_shown_without_idle_digits() {
        let scene = Scene::new();
        assert_eq!(scene.sol.show(1_500_000_000), "1.5 SOL");
        assert_eq!(scene.usd.show(1), "0.000001 USDL");
        assert_eq!(scene.usd.show(2_000_000), "2 USDL");
    }
}
