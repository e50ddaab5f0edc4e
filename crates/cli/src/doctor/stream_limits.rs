//! Check of what a Yellowstone server takes in one request, as the indexer finds it, and of what is lost where that is too little.

use std::time::Duration;

use sluice_config::GeyserConfig;
use sluice_geyser::{Endpoint, RequestLimits, StreamError};
use sluice_indexer::ingest::limit_probe;
use tokio::time::timeout;

use super::report::Finding;

/// Time for all trials of a server: each waits for the first update of a stream.
const PATIENCE: Duration = Duration::from_secs(45);

/// Tries what the server takes. `None` where the configuration forbids such trials.
pub async fn check(endpoint: &Endpoint, config: &GeyserConfig) -> Option<Finding> {
    if !config.probe_limits {
        return None;
    }
    let trials = timeout(PATIENCE, limit_probe::of_server(endpoint)).await;
    Some(
        match trials.unwrap_or(Err(StreamError::Stalled(PATIENCE))) {
            Ok(limits) => judge(&limits, config.watch_closed_accounts),
            Err(error) => Finding::doubtful(
                format!("they could not be found: {error}"),
                "see whether the server allows several streams of one client; the indexer tries again when it starts, and takes \
                 a request that is refused apart",
            ),
        },
    )
}

/// What the limits mean; `watches_closed` says that closed accounts are to be subscribed to.
fn judge(limits: &RequestLimits, watches_closed: bool) -> Finding {
    let most = |limit: Option<usize>| {
        limit.map_or_else(|| "any number".to_owned(), |most| most.to_string())
    };
    let found = format!(
        "of one request: accounts: {}, programs: {}, accounts of transactions: {}",
        most(limits.pubkeys),
        most(limits.owners),
        most(limits.account_include),
    );
    if limits.owners == Some(0) {
        return Finding::broken(
            found,
            "use a server or a plan that takes filters of owners: every pool is followed by its program",
        );
    }
    if watches_closed && !limits.keyless {
        return Finding::broken(
            format!("{found}; no filter of closed accounts"),
            "set geyser.watch-closed-accounts to false: the market's filter is refused with it. Pools that are closed are noticed \
             later then",
        );
    }
    if [limits.pubkeys, limits.account_include].contains(&Some(0)) {
        return Finding::doubtful(
            found,
            "use a server or a plan that takes these filters as well: webhooks that need them are refused",
        );
    }
    Finding::Well(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_well_that_takes_some_of_everything() {
        let limits = RequestLimits {
            pubkeys: Some(50),
            owners: Some(7),
            ..RequestLimits::default()
        };
        let found =
            "of one request: accounts: 50, programs: 7, accounts of transactions: any number";
        assert_eq!(judge(&limits, true), Finding::Well(found.to_owned()));
    }

    #[test]
    fn what_is_refused_altogether_is_said_with_what_it_costs() {
        let no_owners = RequestLimits {
            owners: Some(0),
            ..RequestLimits::default()
        };
        let no_accounts = RequestLimits {
            pubkeys: Some(0),
            ..RequestLimits::default()
        };
        let (owners, accounts) = (judge(&no_owners, true), judge(&no_accounts, true));
        assert!(matches!(owners, Finding::Broken { .. }), "{owners:?}");
        assert!(matches!(accounts, Finding::Doubtful { .. }), "{accounts:?}");
    }

    #[test]
    fn a_server_without_filters_of_closed_accounts_is_of_no_use_only_where_they_are_asked_for() {
        let limits = RequestLimits {
            keyless: false,
            ..RequestLimits::default()
        };
        let (asked, not_asked) = (judge(&limits, true), judge(&limits, false));
        assert!(matches!(asked, Finding::Broken { .. }), "{asked:?}");
        assert!(matches!(not_asked, Finding::Well(_)), "{not_asked:?}");
    }
}
