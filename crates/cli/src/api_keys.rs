//! `sluice keys`: makes, lists, limits and revokes API keys, and encrypts secrets under another key.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use service_kit::Clock;
use sluice_store::{
    Access, ApiKey, ApiKeyId, ApiKeySecret, MAX_API_KEY_DAYS, NewApiKey, Quotas, Scope, Scopes,
    Store, Timestamp, api_key_name_fault,
};

use crate::config_file::{FileArguments, with_store};

/// A day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Most messages a second to which a key may be limited: more than one process sends.
const MAX_MESSAGES_PER_SECOND: i64 = 1_000_000;

/// What to do with keys.
#[derive(Subcommand)]
pub enum Command {
    /// Makes a key and shows it, once: only its hash is stored.
    #[command(
        after_help = "Examples:\n  sluice keys add billing --expires-in-days 90\n  sluice keys add dashboard --scope webhooks:read"
    )]
    Add(AddArguments),
    /// Lists every key, revoked ones included.
    #[command(after_help = "Examples:\n  sluice keys list")]
    List(FileArguments),
    /// Sets what a key may have. What is not given is as configured for all; what a key has beyond its limits stays.
    #[command(
        after_help = "Examples:\n  sluice keys limit billing --webhooks 50 --addresses 10000 --stored-mib 512"
    )]
    Limit(LimitArguments),
    /// Revokes a key, at once and for good. Its webhooks are switched off.
    #[command(after_help = "Examples:\n  sluice keys revoke billing")]
    Revoke(RevokeArguments),
    /// Encrypts under store.encryption-key what is still encrypted under store.previous-encryption-key. It may run beside all
    /// processes, end at any time, and run again.
    #[command(after_help = "Examples:\n  sluice keys reencrypt --config sluice.toml")]
    Reencrypt(FileArguments),
}

/// Arguments of `add`.
#[derive(Args)]
pub struct AddArguments {
    /// A name by which people know it, such as the service that uses it.
    name: String,
    /// Days after which it stops being accepted by itself. Its webhooks go on until it is revoked, or another key takes them over.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_API_KEY_DAYS)))]
    expires_in_days: Option<u32>,
    /// What it may do: webhooks:read, webhooks:write, keys:write, or several of them, each with the option again. Everything with
    /// its own webhooks, unless given; keys:write, to make and revoke keys by the API and in the console, is given by name alone.
    #[arg(long = "scope", value_name = "SCOPE", value_parser = scope)]
    scopes: Vec<Scope>,
    #[command(flatten)]
    adopt: Adopt,
    #[command(flatten)]
    file: FileArguments,
}

/// Webhooks that a new key takes over.
#[derive(Args)]
struct Adopt {
    /// Also gives it every webhook that was made while there were no keys.
    #[arg(long)]
    adopt_keyless: bool,
    /// Also gives it every webhook of another key (id or name), which may be revoked.
    #[arg(long, value_name = "KEY")]
    adopt_from: Option<String>,
}

/// Arguments of `limit`.
#[derive(Args)]
pub struct LimitArguments {
    /// Its id or its name.
    key: String,
    /// Most webhooks.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    webhooks: Option<u32>,
    /// Most addresses that its webhooks watch together, each counted once for each webhook.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    addresses: Option<u32>,
    /// Most MiB of messages that are kept for its webhooks: beyond them the oldest are removed, delivered or not.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    stored_mib: Option<u32>,
    /// Most messages that are sent in a second to its webhooks together, repetitions included: the others wait.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=MAX_MESSAGES_PER_SECOND))]
    messages_per_second: Option<u32>,
    /// Most deliveries that are under way for its webhooks at once.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    delivery_slots: Option<u32>,
    #[command(flatten)]
    file: FileArguments,
}

/// Arguments of `revoke`.
#[derive(Args)]
pub struct RevokeArguments {
    /// Its id or its name.
    key: String,
    #[command(flatten)]
    file: FileArguments,
}

/// Runs one of the commands.
///
/// # Errors
/// When the configuration or the database cannot be used, or the command cannot be followed.
pub async fn run(command: Command, clock: &Clock) -> anyhow::Result<()> {
    let now = Timestamp::from(clock.now());
    match command {
        Command::Add(AddArguments {
            name,
            expires_in_days,
            scopes,
            adopt,
            file,
        }) => {
            check_name(&name)?;
            let secret = ApiKeySecret::from_random(rand::random());
            let new = NewApiKey {
                id: ApiKeyId::from_random(rand::random()),
                name,
                hash: secret.hash(),
                created: now,
                expires: expires_in_days.map(|days| now.after(DAY.saturating_mul(days))),
                scopes: if scopes.is_empty() {
                    Scopes::ALL
                } else {
                    Scopes::only(scopes)
                },
            };
            with_store(&file, |_, store| add(store, new, secret, adopt)).await
        }
        Command::List(file) => {
            let keys = with_store(&file, |_, store| async move { Ok(store.api_keys().await?) });
            print!("{}", table(&keys.await?, now));
            Ok(())
        }
        Command::Limit(LimitArguments {
            key,
            webhooks,
            addresses,
            stored_mib,
            messages_per_second,
            delivery_slots,
            file,
        }) => {
            let quotas = Quotas {
                webhooks,
                addresses,
                stored_mib,
                messages_per_second,
                delivery_slots,
            };
            with_store(&file, |_, store| limit(store, key, quotas)).await
        }
        Command::Revoke(RevokeArguments { key, file }) => {
            with_store(&file, |_, store| revoke(store, key, now)).await
        }
        Command::Reencrypt(file) => with_store(&file, |_, store| reencrypt(store)).await,
    }
}

async fn add(
    store: Store,
    new: NewApiKey,
    secret: ApiKeySecret,
    adopt: Adopt,
) -> anyhow::Result<()> {
    let from = match &adopt.adopt_from {
        None => None,
        Some(key) => Some(find(&store, key).await?),
    };
    let key = store.create_api_key(&new).await?;
    // The key alone goes to standard output, so that a script can take it from there.
    eprintln!("{} ({}): keep it, it is not shown again", key.name, key.id);
    println!("{}", secret.expose());
    for from in [
        adopt.adopt_keyless.then_some(Access::All),
        from.map(Access::Key),
    ]
    .into_iter()
    .flatten()
    {
        let count = store.adopt_webhooks(&from, &key.id).await?;
        match from.api_key() {
            None => eprintln!("{count} webhooks of no key are its own now"),
            Some(before) => eprintln!("{count} webhooks of {before} are its own now"),
        }
    }
    Ok(())
}

async fn limit(store: Store, key: String, quotas: Quotas) -> anyhow::Result<()> {
    ensure!(
        store.set_quotas(&key, quotas).await?,
        "there is no key {key} that could be limited; `sluice keys list` shows all"
    );
    println!("{key} may have {}", limits(quotas));
    Ok(())
}

/// The limits of a key in words.
fn limits(quotas: Quotas) -> String {
    let words = |limit: Option<u32>| {
        limit.map_or("as many as configured".to_owned(), |limit| {
            limit.to_string()
        })
    };
    let (webhooks, addresses) = (words(quotas.webhooks), words(quotas.addresses));
    let stored = words(quotas.stored_mib);
    let rate = words(quotas.messages_per_second);
    let slots = words(quotas.delivery_slots);
    format!(
        "webhooks: {webhooks}, addresses: {addresses}, stored MiB: {stored}, messages a second: {rate}, deliveries at once: {slots}"
    )
}

async fn revoke(store: Store, key: String, now: Timestamp) -> anyhow::Result<()> {
    let Some(key) = store.revoke_api_key(&key, now).await? else {
        bail!("there is no key {key} that could be revoked; `sluice keys list` shows all");
    };
    println!(
        "{} ({}) is revoked; its {} webhooks are off",
        key.name, key.id, key.webhooks
    );
    Ok(())
}

async fn reencrypt(store: Store) -> anyhow::Result<()> {
    let (Some(count), Some(id)) = (store.reencrypt().await?, store.encryption_key_id()) else {
        bail!(
            "nothing is encrypted without a key: set store.encryption-key, or SLUICE_STORE__ENCRYPTION_KEY_FILE, to 32 random \
             bytes in base64"
        );
    };
    println!(
        "secrets and headers of {count} webhooks were encrypted anew; all are under the key {id} now, and \
         store.previous-encryption-key may be taken out"
    );
    Ok(())
}

async fn find(store: &Store, id_or_name: &str) -> anyhow::Result<ApiKeyId> {
    let keys = store.api_keys().await?;
    let found = keys
        .into_iter()
        .find(|key| key.id.as_str() == id_or_name || key.name == id_or_name);
    found
        .map(|key| key.id)
        .with_context(|| format!("there is no key {id_or_name}; `sluice keys list` shows all"))
}

fn scope(name: &str) -> Result<Scope, String> {
    let known = || Scope::ALL.map(Scope::name).join(", ");
    Scope::from_name(name).ok_or_else(|| format!("must be one of {}", known()))
}

fn check_name(name: &str) -> anyhow::Result<()> {
    if let Some(fault) = api_key_name_fault(name) {
        bail!("a key's name {fault}");
    }
    Ok(())
}

/// One line per key.
fn table(keys: &[ApiKey], now: Timestamp) -> String {
    let mut lines = String::new();
    for key in keys {
        let state = match (key.revoked, key.expires) {
            (Some(time), _) => format!("revoked {time}"),
            (None, Some(time)) if time <= now => format!("expired {time}"),
            (None, Some(time)) => format!("in use until {time}"),
            (None, None) => "in use".to_owned(),
        };
        lines.push_str(&format!(
            "{}  {:width$}  {} webhooks  made {}  {state}{}{}\n",
            key.id,
            key.name,
            key.webhooks,
            key.created,
            own_limits(key.quotas),
            own_scopes(&key.scopes),
            width = longest_name(keys),
        ));
    }
    lines
}

/// The limits that a key has of its own, if there are any.
fn own_limits(quotas: Quotas) -> String {
    if quotas == Quotas::default() {
        return String::new();
    }
    format!("  may have {}", limits(quotas))
}

/// The scopes of a key, where they are not all.
fn own_scopes(scopes: &Scopes) -> String {
    let Some(named) = scopes.named() else {
        return String::new();
    };
    let names: Vec<_> = named.iter().map(|scope| scope.name()).collect();
    format!("  only {}", names.join(", "))
}

fn longest_name(keys: &[ApiKey]) -> usize {
    let lengths = keys.iter().map(|key| key.name.chars().count());
    lengths.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_confuse_a_list_are_refused() {
        for good in ["ci", "Swap desk", "a".repeat(60).as_str()] {
            assert!(check_name(good).is_ok(), "{good:?}");
        }
        for bad in ["", " ci", "ci ", "a\nb", "key_1", "a".repeat(61).as_str()] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
