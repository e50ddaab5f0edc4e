//! API and indexer as two processes, which meet in the database alone.

use std::{
    ffi::OsString,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use reqwest::StatusCode;
use serde_json::Value;
use sluice_localnet::{
    Artifacts,
    artifacts::Overrides,
    process::OwnedProcess,
    receiver::Receiver,
    rest::{Part, SluiceClient},
};

use crate::net::TestNet;

/// How long the two may take to be ready, and a webhook made through one to be followed by the other.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks at a health endpoint.
const POLL: Duration = Duration::from_millis(100);

/// Asks a part for its health until `good` accepts the answer.
async fn until(
    sluice: &SluiceClient,
    part: Part,
    good: impl Fn(StatusCode, &Value) -> bool,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let seen = sluice.ready(part).await;
        if seen
            .as_ref()
            .is_ok_and(|health| good(health.status, &health.body))
        {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "{part:?} does not get there: {seen:?}"
        );
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test]
async fn a_webhook_made_through_the_api_is_followed_by_the_indexer() -> anyhow::Result<()> {
    let mut net = TestNet::start().await?;
    net.net.service.process.stop()?;
    let artifacts = Artifacts::find(&Overrides::default())?;
    let alone = |role: &'static str| {
        let dir = &net.net.dir;
        let config = dir.sluice_config().into_os_string();
        let arguments: [OsString; 3] = [role.into(), "--config".into(), config];
        let log = dir.root().join(format!("{role}.log"));
        OwnedProcess::spawn(role, &artifacts.sluice, &arguments, &[], &log)
    };
    let (mut api, mut indexer) = (alone("api")?, alone("indexer")?);
    let sluice = net.net.sluice();
    for part in [Part::Api, Part::Indexer] {
        until(sluice, part, |status, _| status == StatusCode::OK).await?;
    }

    let receiver = Receiver::start(net.net.ports.receiver).await?;
    let program = [swap_guard_interface::PROGRAM_ID];
    sluice
        .create_webhook(&receiver.url(), &[], &program)
        .await
        .context("creating the webhook")?;
    until(sluice, Part::Indexer, |_, body| {
        let revision = |name: &str| body.pointer(name).and_then(Value::as_u64);
        let wanted = revision("/filter/wantedRevision");
        wanted >= Some(1) && revision("/filter/inForceRevision") == wanted
    })
    .await?;

    indexer.stop()?;
    let health = sluice.ready(Part::Api).await?;
    ensure!(
        health.status == StatusCode::OK,
        "the API fell with the indexer: {}",
        health.body
    );
    api.stop()?;
    receiver.stop().await;
    net.stop().await
}
