//! Check of this machine: how many files a process may have open, against the connections that are allowed.

use nix::sys::resource::{Resource, getrlimit};
use sluice_config::ClientLimitsConfig;

use super::report::Finding;

/// Files beside the clients' connections: deliveries, streams, the database, logs.
const OTHERS: u64 = 1024;

/// Looks at the limit of open files.
pub fn open_files(clients: &ClientLimitsConfig) -> Finding {
    let needed = u64::try_from(clients.connections.get()).unwrap_or(u64::MAX);
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((limit, _)) => judge(limit, needed.saturating_add(OTHERS)),
        Err(error) => Finding::doubtful(
            format!("the limit is not known: {}", error.desc()),
            "see `ulimit -n`",
        ),
    }
}

fn judge(limit: u64, needed: u64) -> Finding {
    if limit >= needed {
        return Finding::Well(format!("at most {limit}, enough for {needed}"));
    }
    Finding::doubtful(
        format!("at most {limit}, and api.clients.connections and the rest may need {needed}"),
        "raise it (`ulimit -n`, or LimitNOFILE= of the unit), or lower api.clients.connections",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_files_are_a_warning() {
        assert!(matches!(judge(1024, 1024), Finding::Well(_)));
        assert!(matches!(judge(1024, 1025), Finding::Doubtful { .. }));
    }
}
