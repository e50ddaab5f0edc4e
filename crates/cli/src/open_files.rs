//! Open files: how many this process may have, raised at its start to the most that the system lets it have.
//!
//! Each connection of a client, stream and delivery is one. Shells and supervisors start processes with a low soft limit, beyond
//! which connections would be refused although the system has room.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sluice_config::ClientLimitsConfig;

/// Files beside the clients' connections: deliveries, streams, the database, logs.
const OTHERS: u64 = 1024;

/// How many files the connections that are allowed, and the rest, may need.
#[must_use]
pub fn needed(clients: &ClientLimitsConfig) -> u64 {
    let connections = u64::try_from(clients.connections.get()).unwrap_or(u64::MAX);
    connections.saturating_add(OTHERS)
}

/// Raises the limit of this process, and logs what it comes to.
pub fn raise(needed: u64) {
    match raised() {
        Ok(limit) if limit >= needed => tracing::debug!(limit, "open files"),
        Ok(limit) => tracing::warn!(
            limit,
            needed,
            "too few files may be open for the connections that are allowed: raise the hard limit (`ulimit -Hn`, or LimitNOFILE= \
             of the unit), or lower api.clients.connections"
        ),
        Err(error) => {
            tracing::warn!(
                error = error.desc(),
                "the limit of open files cannot be raised"
            );
        }
    }
}

fn raised() -> nix::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}
