//! Open files: how many this process may have, raised at its start to the most that the system lets it have.
//!
//! Each connection of a client, stream and delivery is one. Shells and supervisors start processes with a low soft limit, beyond
//! which connections would be refused although the system has room.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files beside the connections of clients and receivers: streams, the database, logs.
pub const OTHERS: u64 = 256;

/// Raises the limit of this process, and logs what it comes to; `needed` is what its settings allow. Returns the limit, `None` where
/// the system does not say.
pub fn raise(needed: u64) -> Option<u64> {
    match raised() {
        Ok(limit) => {
            if limit >= needed {
                tracing::debug!(limit, "open files");
            } else {
                tracing::warn!(
                    limit,
                    needed,
                    "too few files may be open for the connections that are allowed: raise the hard limit (`ulimit -Hn`, or \
                     LimitNOFILE= of the unit), or lower api.clients.connections"
                );
            }
            Some(limit)
        }
        Err(error) => {
            tracing::warn!(
                error = error.desc(),
                "the limit of open files cannot be raised"
            );
            None
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
