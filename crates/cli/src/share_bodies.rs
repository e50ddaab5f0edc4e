//! `sluice share-bodies`: the second step of an upgrade, when no process of the earlier release runs any more.

use crate::config_file::{FileArguments, with_store};

/// Lets messages of an event share what they have in common.
///
/// # Errors
/// When the store cannot be used.
pub async fn run(file: &FileArguments) -> anyhow::Result<()> {
    let changed = with_store(
        file,
        |_, store| async move { Ok(store.share_bodies().await?) },
    );
    if changed.await? {
        println!("what the webhooks of an event have in common is stored once from now on");
    } else {
        println!("what the webhooks of an event have in common was stored once already");
    }
    Ok(())
}
