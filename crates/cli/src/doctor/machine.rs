//! Check of this machine: how many files a process may have open, against the connections that are allowed.

use nix::sys::resource::{Resource, getrlimit};
use sluice_config::ClientLimitsConfig;

use service_kit::open_files;
use sluice_indexer::delivery::limits::MAX_LEASED;

use super::report::Finding;

/// Looks at the limit of open files, to which a service raises its own when it starts.
pub fn open_files(clients: &ClientLimitsConfig) -> Finding {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, limit)) => judge(limit, needed(clients)),
        Err(error) => Finding::doubtful(
            format!("the limit is not known: {}", error.desc()),
            "see `ulimit -Hn`",
        ),
    }
}

/// How many files the connections that are allowed, and the rest, may need where one process is API and indexer.
fn needed(clients: &ClientLimitsConfig) -> u64 {
    let connections = clients.connections.get().saturating_add(MAX_LEASED);
    u64::try_from(connections)
        .unwrap_or(u64::MAX)
        .saturating_add(open_files::OTHERS)
}

fn judge(limit: u64, needed: u64) -> Finding {
    if limit >= needed {
        return Finding::Well(format!("at most {limit}, enough for {needed}"));
    }
    Finding::doubtful(
        format!(
            "at most {limit}, and api.clients.connections, deliveries and the rest may need {needed}"
        ),
        "raise it (`ulimit -Hn`, or LimitNOFILE= of the unit), or lower api.clients.connections",
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
