//! `sluice listen`: relays a temporary webhook's messages to a server on a developer's machine.
//!
//! A temporary webhook is made; its messages come down one connection ([`api`]), are posted to the local
//! URL with the client and the signature of real deliveries, and what became of each is reported back. What
//! the local server refuses comes again, as it would from a real webhook. At the end the webhook is deleted;
//! one that is left behind ends by itself.

mod api;

use std::{sync::Arc, time::Duration};

use anyhow::{Context, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use service_kit::{Backoff, CancellationToken, Clock};
use sluice_store::{Attempt, DeliveryOptions, MessageId, Secret, Secrets};
use sluice_webhook_client::{Client, Reach, WebhookRequest, target};
use tokio::task::JoinSet;
use url::Url;

use self::api::{Api, ApiError, RelayLine, Report};

/// How long the local server may take to answer.
const DEADLINE: Duration = Duration::from_secs(15);

/// Start of a signing secret.
const SECRET_PREFIX: &str = "whsec_";

/// Arguments of `listen`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where what arrives is posted: plain http on this machine, or https.
    #[arg(long, value_name = "URL")]
    forward: Url,
    /// Accounts to listen to, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "ADDRESSES")]
    accounts: Vec<String>,
    /// Programs to listen to, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "ADDRESSES")]
    programs: Vec<String>,
    /// Kinds of event, separated by commas.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "accountChange,transaction,programEvent"
    )]
    events: Vec<String>,
    /// Commitment of the events: processed, confirmed or finalized.
    #[arg(long, default_value = "confirmed")]
    commitment: String,
    /// Base URL of the API.
    #[arg(long, default_value = "http://127.0.0.1:8787", value_name = "URL")]
    api: Url,
    /// API key; not needed while the API has none.
    #[arg(long, env = "SLUICE_API_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Also prints the body of every message.
    #[arg(long)]
    bodies: bool,
}

/// What delivering a message takes.
struct Forwarder {
    api: Api,
    clock: Clock,
    client: Client,
    webhook: String,
    secrets: Secrets,
    url: String,
    bodies: bool,
}

/// Listens until `shutdown`.
///
/// # Errors
/// When the local URL cannot be called, the API refuses, or the webhook is gone. A connection that breaks is
/// made again.
pub async fn run(
    arguments: Arguments,
    clock: Clock,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let url = arguments.forward.as_str();
    target::check(url, Reach::PublicAndLoopback)
        .map_err(|fault| anyhow::anyhow!("--forward {url}: {fault}"))?;
    let api = Api::new(
        &arguments.api,
        arguments.key.clone().map(SecretString::from),
    )?;
    let created = api.create(&definition(&arguments)).await?;
    println!("webhook {} listens; its signing secret is", created.id);
    println!("{}", created.secret);
    let forwarder = Arc::new(Forwarder {
        client: Client::new(DEADLINE, Reach::PublicAndLoopback)?,
        webhook: created.id.clone(),
        secrets: Secrets {
            current: parse_secret(&created.secret)?,
            previous: Vec::new(),
        },
        url: url.to_owned(),
        bodies: arguments.bodies,
        api: api.clone(),
        clock,
    });
    let result = tokio::select! {
        result = follow(&forwarder) => result,
        () = shutdown.cancelled() => Ok(()),
    };
    match api.delete(&created.id).await {
        Ok(()) => println!("webhook {} is deleted", created.id),
        Err(error) => eprintln!("the webhook could not be deleted and ends by itself: {error}"),
    }
    result
}

fn definition(arguments: &Arguments) -> Value {
    let mut filters = Map::new();
    filters.insert("accounts".to_owned(), json!(arguments.accounts));
    filters.insert("programs".to_owned(), json!(arguments.programs));
    json!({
        "temporary": true,
        "events": arguments.events,
        "filters": filters,
        "commitment": arguments.commitment,
        "description": "sluice listen",
    })
}

/// The API shows secrets as text; the client signs with the key inside.
fn parse_secret(text: &str) -> anyhow::Result<Secret> {
    let key = text
        .strip_prefix(SECRET_PREFIX)
        .and_then(|key| STANDARD.decode(key).ok())
        .and_then(|key| key.try_into().ok());
    key.map(Secret::from_random)
        .context("the API answered with a signing secret of another form; is it of this version?")
}

/// Reads stream after stream. Ends only when there is nothing left to listen to.
async fn follow(forwarder: &Arc<Forwarder>) -> anyhow::Result<()> {
    let mut backoff = Backoff::new();
    loop {
        match read_stream(forwarder, &mut backoff).await {
            Ok(()) => eprintln!("the connection to the API has ended; connecting again"),
            Err(error) if !error.passes() => bail!(error),
            Err(error) => eprintln!("{error}; connecting again"),
        }
        tokio::time::sleep(backoff.next_pause(rand::random())).await;
    }
}

async fn read_stream(forwarder: &Arc<Forwarder>, backoff: &mut Backoff) -> Result<(), ApiError> {
    let mut stream = forwarder.api.stream(&forwarder.webhook).await?;
    // Dropped with the stream: its messages come down the next one.
    let mut deliveries = JoinSet::new();
    while let Some(line) = stream.next().await? {
        backoff.reset();
        deliveries.spawn(Arc::clone(forwarder).forward(line));
        while deliveries.try_join_next().is_some() {}
    }
    Ok(())
}

impl Forwarder {
    async fn forward(self: Arc<Self>, line: RelayLine) {
        let Ok(id) = MessageId::parse(&line.id) else {
            eprintln!("the API sent a message with the malformed id {}", line.id);
            return;
        };
        let attempt = self
            .client
            .post(
                &WebhookRequest {
                    id: &id,
                    url: &self.url,
                    secrets: &self.secrets,
                    headers: &[],
                    gzip: false,
                    options: &DeliveryOptions::default(),
                    body: &line.body,
                },
                self.clock.now(),
            )
            .await;
        println!("{}", headline(&line, &attempt));
        if self.bodies {
            println!("{}", line.body);
        }
        let report = Report {
            id: line.id,
            accepted: attempt.accepted(),
            status: attempt.status,
            duration_ms: u32::try_from(attempt.duration.as_millis()).unwrap_or(u32::MAX),
            error: attempt.error,
        };
        if let Err(error) = self.api.report(&self.webhook, &report).await {
            eprintln!("{} will come again: {error}", report.id);
        }
    }
}

/// What arrived and what became of it, on one line.
fn headline(line: &RelayLine, attempt: &Attempt) -> String {
    let slot = serde_json::from_str::<Value>(&line.body)
        .ok()
        .and_then(|body| body["slot"].as_u64())
        .map_or_else(String::new, |slot| format!(" slot {slot}"));
    let again = if line.attempt > 1 {
        format!(" (attempt {})", line.attempt)
    } else {
        String::new()
    };
    let result = match (attempt.status, &attempt.error) {
        (Some(status), None) => status.to_string(),
        (_, Some(error)) => error.clone(),
        (None, None) => "no answer".to_owned(),
    };
    let millis = attempt.duration.as_millis();
    format!(
        "#{} {}{slot} {}{again} -> {result}, {millis} ms",
        line.sequence, line.kind, line.id
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_comes_back_as_it_was_shown() {
        let secret = Secret::from_random([9; 32]);
        let parsed = parse_secret(secret.expose()).expect("reads");
        assert_eq!(parsed, secret);
        for bad in ["", "whsec_", "whsec_!", "whsec_AAAA"] {
            assert!(parse_secret(bad).is_err(), "{bad:?}");
        }
    }
}
