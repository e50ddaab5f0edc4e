//! Check of this machine: how many files a process may have open, against the connections that are allowed.

use nix::sys::resource::{Resource, getrlimit};
use sluice_config::ClientLimitsConfig;

use super::report::Finding;
use crate::open_files;

/// Looks at the limit of open files, to which a service raises its own when it starts.
pub fn open_files(clients: &ClientLimitsConfig) -> Finding {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, limit)) => judge(limit, open_files::needed(clients)),
        Err(error) => Finding::doubtful(
            format!("the limit is not known: {}", error.desc()),
            "see `ulimit -Hn`",
        ),
    }
}

fn judge(limit: u64, needed: u64) -> Finding {
    if limit >= needed {
        return Finding::Well(format!("at most {limit}, enough for {needed}"));
    }
    Finding::doubtful(
        format!("at most {limit}, and api.clients.connections and the rest may need {needed}"),
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
