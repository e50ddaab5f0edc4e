//! Pool dependencies: the accounts that a pool's quotes need, combined into one pool snapshot (pure).

use std::sync::Arc;

use cpmm::{DecodeError, Mint, PerToken, PoolSnapshot, PoolState, TokenProgram};
use solana_pubkey::Pubkey;

use crate::decoded_account::{DecodedAccount, Vault};

/// Why a pool cannot be quoted although it exists. A pool whose mints carry an extension that is not
/// supported is not among these: it is complete, and its quotes are refused with that reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Incomplete {
    /// An account of the pool has not been read yet.
    #[error("{what} {key} is not known yet")]
    Unknown {
        /// What it is to the pool.
        what: &'static str,
        /// Its address.
        key: Pubkey,
    },
    /// An account of the pool does not exist.
    #[error("{what} {key} does not exist")]
    Absent {
        /// What it is to the pool.
        what: &'static str,
        /// Its address.
        key: Pubkey,
    },
    /// An account of the pool has data that this build does not understand.
    #[error("{what} {key} cannot be read: {error}")]
    Unreadable {
        /// What it is to the pool.
        what: &'static str,
        /// Its address.
        key: Pubkey,
        /// Why.
        error: DecodeError,
    },
    /// An account of the pool is not what the pool says it is.
    #[error("{what} {key} does not match the pool")]
    Mismatch {
        /// What it is to the pool.
        what: &'static str,
        /// Its address.
        key: Pubkey,
    },
}

/// Addresses of the accounts that a pool's quotes depend on, besides the pool and the clock.
pub(crate) fn dependencies(pool: &PoolState) -> [Pubkey; 5] {
    [
        pool.amm_config,
        pool.vaults.token_0,
        pool.vaults.token_1,
        pool.mints.token_0,
        pool.mints.token_1,
    ]
}

/// The snapshot of a pool with the vault balances that `changed`, all else as it was `before`: a swap writes
/// three of six accounts. `None` when more than balances and the pool's own fields may have changed.
pub(crate) fn with_balances<'a>(
    before: &PoolSnapshot,
    pool: &Arc<PoolState>,
    changed: impl Iterator<Item = Pubkey>,
    get: impl Fn(&Pubkey) -> Option<&'a DecodedAccount>,
) -> Option<PoolSnapshot> {
    if dependencies(&before.pool) != dependencies(pool) || before.vaults_frozen {
        return None;
    }
    let mut now = PoolSnapshot {
        pool: Arc::clone(pool),
        ..before.clone()
    };
    for key in changed {
        let (vaults, mints, programs) = (&pool.vaults, &pool.mints, &pool.token_programs);
        let (amount, mint, program) = if key == vaults.token_0 {
            (
                &mut now.vault_amounts.token_0,
                mints.token_0,
                programs.token_0,
            )
        } else if key == vaults.token_1 {
            (
                &mut now.vault_amounts.token_1,
                mints.token_1,
                programs.token_1,
            )
        } else {
            return None;
        };
        let Some(DecodedAccount::Vault(vault)) = get(&key) else {
            return None;
        };
        if vault.frozen || vault.mint != mint || vault.program.id() != program {
            return None;
        }
        *amount = vault.amount;
    }
    Some(now)
}

/// The snapshot of a pool from all of its accounts. `get` returns what is known of an account.
pub(crate) fn pool_snapshot<'a>(
    pool: &Arc<PoolState>,
    get: impl Fn(&Pubkey) -> Option<&'a DecodedAccount>,
) -> Result<PoolSnapshot, Incomplete> {
    let find = |what: &'static str, key: Pubkey| match get(&key) {
        None => Err(Incomplete::Unknown { what, key }),
        Some(DecodedAccount::Absent) => Err(Incomplete::Absent { what, key }),
        Some(DecodedAccount::Unreadable(error)) => Err(Incomplete::Unreadable {
            what,
            key,
            error: *error,
        }),
        Some(account) => Ok(account),
    };
    let config = |key| match find("fee configuration", key)? {
        DecodedAccount::Config(config) => Ok(Arc::clone(config)),
        _ => Err(Incomplete::Mismatch {
            what: "fee configuration",
            key,
        }),
    };
    let program = |id: Pubkey| TokenProgram::from_id(&id);
    let mint = |key, token_program, decimals| match (program(token_program), find("mint", key)) {
        (Some(program), Ok(DecodedAccount::Mint(owner, mint))) if program == *owner => {
            Ok(Arc::clone(mint))
        }
        // Its pool exists, so it did before, nothing of it that a quote needs has changed since, and it cannot be closed. A
        // read that did not find it was of a slot, or a fork, before it.
        (Some(TokenProgram::Spl), Err(Incomplete::Unknown { .. } | Incomplete::Absent { .. })) => {
            Ok(Arc::new(Mint::unread(decimals)))
        }
        (_, Err(incomplete)) => Err(incomplete),
        (_, Ok(_)) => Err(Incomplete::Mismatch { what: "mint", key }),
    };
    let vault = |key, mint, token_program| match find("vault", key)? {
        DecodedAccount::Vault(vault)
            if program(token_program) == Some(vault.program) && vault.mint == mint =>
        {
            Ok::<Vault, Incomplete>(*vault)
        }
        _ => Err(Incomplete::Mismatch { what: "vault", key }),
    };
    let (programs, mints, decimals) = (&pool.token_programs, &pool.mints, &pool.mint_decimals);
    let vaults = PerToken::new(
        vault(pool.vaults.token_0, mints.token_0, programs.token_0)?,
        vault(pool.vaults.token_1, mints.token_1, programs.token_1)?,
    );
    Ok(PoolSnapshot {
        config: config(pool.amm_config)?,
        vault_amounts: PerToken::new(vaults.token_0.amount, vaults.token_1.amount),
        vaults_frozen: vaults.token_0.frozen || vaults.token_1.frozen,
        mints: PerToken::new(
            mint(mints.token_0, programs.token_0, decimals.token_0)?,
            mint(mints.token_1, programs.token_1, decimals.token_1)?,
        ),
        pool: Arc::clone(pool),
    })
}
