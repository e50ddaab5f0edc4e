//! Memory of an indexer that delivers the longest messages there are, of which ten thousand wait.

use std::{env, process::Stdio};

use anyhow::{Context, ensure};
use sluice_geyser::AccountUpdate;
use sluice_indexer::slots::SlotEvent;
use sluice_store::{Commitment, Filters, Store};
use sluice_testkit::{
    figure::{Figure, Limit},
    free_port::free_address,
};
use tokio::process::Command;

use super::{
    queue::{Queue, pool_write},
    receiver::{Keeping, Receivers},
    start::{CHILD, peak_memory},
};

/// Bytes of an account as long as one may be, which are 14 MB in base64.
const ACCOUNT: usize = 10 << 20;

/// Webhooks, of which each is owed a message of each event.
const WEBHOOKS: usize = 500;

/// Events. What each says is stored once, so this is how often the disk must have room for it.
const EVENTS: u64 = 20;

/// Endpoints of the webhooks.
const ENDPOINTS: usize = 8;

/// Deliveries after which the memory is read: a hundred times as many as are in memory at once.
const DELIVERED: u64 = 600;

/// Measures the memory of a process that delivers them.
///
/// # Errors
/// When the database cannot be filled, or the process does not deliver.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("sluice.db");
    let receivers = Receivers::start(ENDPOINTS, Keeping::Count)?;
    fill(Store::open(&database).await?, &receivers).await?;

    let mut child = Command::new(env::current_exe()?)
        .args([CHILD.as_ref(), database.as_os_str()])
        .arg(free_address()?.to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    receivers.until(DELIVERED).await?;
    let process = child.id().context("the indexer has ended")?;
    let memory = peak_memory(process)?;
    child.kill().await?;
    println!(
        "{} messages of 14 MB with {EVENTS} bodies waited, of which {} were delivered",
        u64::try_from(WEBHOOKS)? * EVENTS,
        receivers.count()
    );
    Ok(vec![Figure::new(
        "10,000 queued messages of 14 MB, 600 of them delivered: most resident memory",
        memory,
        "MB",
        Limit::AtMost(300.0),
    )])
}

/// Owes every webhook a message of every event, and closes the store.
async fn fill(store: Store, receivers: &Receivers) -> anyhow::Result<()> {
    let urls = receivers.urls().into_iter().cycle().take(WEBHOOKS);
    let program = pool_write(0, 0).owner;
    let mut queue = Queue::create_with(store, &urls.collect::<Vec<_>>(), |_, new| {
        new.definition.commitment = Commitment::Confirmed;
        new.definition.filters = Filters {
            programs: vec![program],
            ..Filters::default()
        };
    })
    .await?;
    for number in 0..EVENTS {
        let messages = queue.messages_of(|slot| {
            vec![SlotEvent::Account(AccountUpdate {
                data: vec![7; ACCOUNT].into(),
                ..pool_write(slot, number)
            })]
        });
        queue.store(&messages).await?;
    }
    let stats = queue.store.queue_stats().await?;
    let least = u64::try_from(WEBHOOKS * ACCOUNT)? * EVENTS / 3 * 4;
    ensure!(
        stats.pending == u64::try_from(WEBHOOKS)? * EVENTS && stats.bytes >= least,
        "the queue is not what is to be delivered: {stats:?}"
    );
    queue.store.close().await;
    Ok(())
}
