//! `sluice doctor`: checks nodes, streams, guard, database and clock of a configuration, and says what to do.
//!
//! It writes nothing: the database is looked at, not brought up to date.

mod chain;
mod database;
mod guard;
mod machine;
mod report;
mod send_node;
mod stream;
mod stream_limits;

use service_kit::Clock;
use sluice_config::Config;

use self::{chain::ChainChecks, report::Report};
use crate::config_file::FileArguments;

/// Checks everything, one after the other, and prints what it finds.
///
/// # Errors
/// When the configuration cannot be read, or a check has failed.
pub async fn run(file: &FileArguments, clock: &Clock) -> anyhow::Result<()> {
    let config = Config::load(&file.config)?;
    let mut report = Report::default();
    let chain = ChainChecks::of(&config)?;
    let (finding, slot) = chain.node().await;
    report.add("RPC node", &finding);
    if slot.is_some() {
        let limit = config.freshness.max_clock_age();
        report.add("clock", &chain.clock(clock.now(), limit).await);
        report.add("list of pools", &chain.list_of_pools().await);
        report.add("exchange", &chain.exchange().await);
        let guard = guard::check(&chain, config.chain.exchange);
        report.add("guard", &guard.await);
        if let Some(table) = &config.chain.lookup_table {
            report.add("lookup table", &chain.lookup_table(table).await);
        }
    }
    if !config.chain.send_urls.is_empty() {
        let genesis = chain.genesis().await;
        for url in &config.chain.send_urls {
            let deadline = config.chain.rpc_timeout();
            let (name, finding) = send_node::check(url, deadline, genesis, slot).await;
            report.add(&format!("send node {name}"), &finding);
        }
    }
    for endpoint in &config.geyser.endpoints() {
        for (subject, finding) in stream::check(endpoint, &config.geyser, slot).await {
            report.add(&subject, &finding);
        }
    }
    report.add("database", &database::check(config.store.database()).await);
    report.add("open files", &machine::open_files(&config.api.clients));
    report.end()
}
