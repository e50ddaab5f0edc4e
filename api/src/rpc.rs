//! RPC client of the API: a blockhash held ready, and a wallet's accounts in one call per request.
//!
//! While a request waits there is at most one round, because the blockhash is kept fresh beside the requests.

mod account;
mod account_batcher;
mod blockhash_cache;
mod call;
mod deployment;
mod feature_cache;
mod landed;
mod lookup_table_cache;
mod recent_fees;
mod send_nodes;
mod simulation;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use service_kit::CancellationToken;
use sluice_transaction::{ExchangeIds, LookupTable, rent::Rent};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use self::{
    account_batcher::AccountBatcher,
    blockhash_cache::BlockhashCache,
    call::Node,
    feature_cache::{FeatureCache, TRANSACTION_V1},
    lookup_table_cache::LookupTableCache,
    recent_fees::RecentFees,
};
use crate::{error::ApiError, extract::Pools, metrics::Metrics};

pub use account::HeldAccount;
pub use blockhash_cache::LatestBlockhash;
pub use deployment::deployment_slot;
pub use landed::Landed;
pub use recent_fees::SlotPrice;
pub use send_nodes::{SendNode, SendNodes};
pub use simulation::{Balances, Simulation, TokenBalance};

/// Addresses of the accounts that a swap depends on.
#[derive(Clone, Copy, Debug)]
pub struct SwapAddresses {
    /// The user's wallet.
    pub user: Pubkey,
    /// The account that pays.
    pub input: Pubkey,
    /// The account that receives.
    pub output: Pubkey,
    /// The account between two pools.
    pub middle: Option<Pubkey>,
    /// The wallet that pays fees and rents, if it is not the user's.
    pub fee_payer: Option<Pubkey>,
    /// The wallet that gets the output, if it is not the user's.
    pub receiver: Option<Pubkey>,
    /// The wallet of a platform, and its account of the input token.
    pub platform: Option<(Pubkey, Pubkey)>,
    /// The nonce account in place of a recent blockhash.
    pub nonce: Option<Pubkey>,
    /// The oldest slot whose state is good enough, `minContextSlot`.
    pub least_slot: u64,
}

/// The accounts that a swap depends on, from one call.
#[derive(Clone, Debug)]
pub struct SwapAccountsRead {
    /// Lamports of the user's wallet.
    pub lamports: u64,
    /// Lamports of the wallet that pays fees and rents.
    pub fee_payer_lamports: u64,
    /// The account that pays; `None` when there is none yet.
    pub input: Option<HeldAccount>,
    /// The account between two pools; `None` when there is none yet, or one pool.
    pub middle: Option<HeldAccount>,
    /// The account that receives; `None` when there is none yet.
    pub output: Option<HeldAccount>,
    /// The account at the address of the receiver, if there is one.
    pub receiver: Option<HeldAccount>,
    /// The account at the address of a platform's wallet, if there is one.
    pub platform_wallet: Option<HeldAccount>,
    /// The platform's account of the input token; `None` when there is none yet.
    pub platform_account: Option<HeldAccount>,
    /// The account at the address of a nonce account, if there is one.
    pub nonce: Option<HeldAccount>,
    /// What the chain asks to keep an account.
    pub rent: Rent,
}

/// RPC client with a deadline on every call.
pub struct Rpc {
    exchange: ExchangeIds,
    node: Arc<Node>,
    blockhashes: BlockhashCache,
    accounts: AccountBatcher,
    transaction_v1: FeatureCache,
    lookup_table: LookupTableCache,
    recent_fees: RecentFees,
}

impl Rpc {
    /// A client of the cluster at `url`, where the exchange has these ids; each call ends after `deadline`. Must be called inside a runtime, on which the
    /// reading of accounts goes on.
    #[must_use]
    pub fn new(url: &str, exchange: ExchangeIds, deadline: Duration, metrics: Metrics) -> Self {
        let node = Arc::new(Node::new(url, deadline, metrics));
        Self {
            exchange,
            blockhashes: BlockhashCache::default(),
            accounts: AccountBatcher::start(Arc::clone(&node)),
            transaction_v1: FeatureCache::default(),
            lookup_table: LookupTableCache::default(),
            recent_fees: RecentFees::default(),
            node,
        }
    }

    /// Where the exchange is.
    #[must_use]
    pub const fn exchange(&self) -> &ExchangeIds {
        &self.exchange
    }

    /// A blockhash that is fresh enough for a transaction: the one that [`Rpc::keep_fresh`] holds ready, or else one
    /// that is fetched now.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn latest_blockhash(&self) -> Result<LatestBlockhash, ApiError> {
        match self.blockhashes.fresh() {
            Some(latest) => Ok(latest),
            None => self.blockhashes.fetch(&self.node).await,
        }
    }

    /// Keeps a blockhash ready until `shutdown`.
    pub async fn keep_fresh(self: Arc<Self>, shutdown: CancellationToken) {
        let keep = self.blockhashes.keep(&self.node);
        shutdown.run_until_cancelled(keep).await;
    }

    /// Keeps the lookup table at `address` as the chain has it, until `shutdown`.
    pub async fn keep_lookup_table(
        self: Arc<Self>,
        address: Option<Pubkey>,
        shutdown: CancellationToken,
    ) {
        let Some(address) = address else {
            return;
        };
        let keep = self.lookup_table.keep(address, &self.exchange, &self.node);
        shutdown.run_until_cancelled(keep).await;
    }

    /// The lookup table that transactions may use.
    #[must_use]
    pub fn lookup_table(&self) -> Option<Arc<LookupTable>> {
        self.lookup_table.usable(Instant::now())
    }

    /// Whether the cluster takes transactions of version 1.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`], where it is not known yet.
    pub async fn takes_version_1(&self) -> Result<bool, ApiError> {
        let now = Instant::now();
        if let Some(known) = self.transaction_v1.known(now) {
            return Ok(known);
        }
        let (accounts, _) = self.accounts.read(vec![TRANSACTION_V1], 0).await?;
        let account = accounts.first().and_then(Option::as_ref);
        Ok(self.transaction_v1.learn(account, now))
    }

    /// The slot in which the exchange was deployed last.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn exchange_deployment(&self) -> Result<u64, ApiError> {
        deployment::read(&self.exchange.program_data, &self.node).await
    }

    /// The lowest prices at which transactions that write these accounts of `pools` landed in each of the last slots.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn recent_prices(
        &self,
        pools: Pools,
        accounts: &[Pubkey],
    ) -> Result<Arc<[SlotPrice]>, ApiError> {
        self.recent_fees.read(&self.node, pools, accounts).await
    }

    /// What the node says that this transaction would do in a state of `least_slot` or later.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`]; that the transaction fails is no error here.
    pub async fn simulate(
        &self,
        transaction: &[u8],
        least_slot: u64,
    ) -> Result<Simulation, ApiError> {
        simulation::simulate(&self.node, transaction, least_slot).await
    }

    /// The transaction of this signature, where a confirmed block has it.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn landed(&self, signature: &Signature) -> Result<Option<Landed>, ApiError> {
        landed::landed(&self.node, signature).await
    }

    /// The accounts of a swap, read by one call.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn swap_accounts(
        &self,
        addresses: SwapAddresses,
    ) -> Result<SwapAccountsRead, ApiError> {
        let SwapAddresses {
            user,
            input,
            output,
            middle,
            fee_payer,
            receiver,
            platform,
            nonce,
            least_slot,
        } = addresses;
        let (platform_wallet, platform_account) = platform.unzip();
        let others = [
            middle,
            fee_payer,
            receiver,
            platform_wallet,
            platform_account,
            nonce,
        ];
        let mut keys = vec![user, input, output];
        keys.extend(others.into_iter().flatten());
        let (accounts, rent) = self.accounts.read(keys, least_slot).await?;
        let mut accounts = accounts.into_iter();
        let [user, input, output] = [(); 3].map(|()| accounts.next().flatten());
        let [
            middle,
            fee_payer_account,
            receiver,
            platform_wallet,
            platform_account,
            nonce,
        ] = others.map(|asked| asked.and_then(|_| accounts.next().flatten()));
        // Lamports sent ahead to an address whose token account is yet to be created make it no token account.
        let created = |account: Option<HeldAccount>| account.filter(|held| !is_system(held));
        let lamports = user.map_or(0, |user| user.lamports);
        Ok(SwapAccountsRead {
            lamports,
            fee_payer_lamports: match fee_payer {
                None => lamports,
                Some(_) => fee_payer_account.map_or(0, |payer| payer.lamports),
            },
            input: created(input),
            middle: created(middle),
            output: created(output),
            receiver,
            platform_wallet,
            platform_account: created(platform_account),
            nonce,
            rent,
        })
    }
}

/// Owner of accounts that hold lamports and nothing else.
const SYSTEM_PROGRAM: Pubkey = Pubkey::new_from_array([0; 32]);

/// Whether the account is a wallet's, or does not exist: lamports and nothing else.
#[must_use]
pub fn is_system(account: &HeldAccount) -> bool {
    account.program == SYSTEM_PROGRAM
}
