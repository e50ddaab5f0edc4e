use secrecy::ExposeSecret;
use serde::Deserialize;

use super::*;
use crate::{Config, Database, Exchange};

/// The file with every setting.
const EXAMPLE: &str = include_str!("../../../../sluice.example.toml");

/// A file in which all but what must be there is left out.
const SHORT: &str = "[chain]\nrpc-url = \"http://127.0.0.1:8899\"\n[store]\npath = \"a.db\"\n
    [[geyser.endpoints]]\nurl = \"http://127.0.0.1:10000\"";

fn variables<'a>(
    pairs: &'a [(&'a str, &'a str)],
) -> impl Iterator<Item = (OsString, OsString)> + 'a {
    pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
}

/// A disk on which one secret lies.
fn read(path: &Path) -> io::Result<String> {
    match path.to_str() {
        Some("/run/secret") => Ok("12345\n".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

fn with(text: &str, pairs: &[(&str, &str)]) -> Result<Config, String> {
    let found = overrides(variables(pairs), read).map_err(|error| error.to_string())?;
    Config::with_overrides(text, Path::new("sluice.toml"), found).map_err(|error| error.to_string())
}

/// The dotted keys of a table's settings, with their values.
fn settings(prefix: &str, value: &toml::Value, found: &mut Vec<(String, toml::Value)>) {
    match value {
        toml::Value::Table(entries) => {
            for (key, value) in entries {
                settings(&format!("{prefix}__{key}"), value, found);
            }
        }
        toml::Value::Array(elements) if elements.iter().any(toml::Value::is_table) => {
            for (index, element) in elements.iter().enumerate() {
                settings(&format!("{prefix}__{index}"), element, found);
            }
        }
        value => found.push((prefix.to_owned(), value.clone())),
    }
}

#[test]
fn every_setting_of_the_example_may_come_from_the_environment_alone() {
    // Also what the example shows in a comment.
    let text = EXAMPLE
        .replace("# lookup-table", "lookup-table")
        .replace("# x-token", "x-token")
        .replace("# [[geyser", "[[geyser")
        .replace("# url = \"https", "url = \"https")
        .replace("# idls", "idls")
        .replace("# otlp-endpoint", "otlp-endpoint");
    let table: toml::Table = text.parse().expect("TOML");
    let mut found = Vec::new();
    for (section, value) in &table {
        settings(section, value, &mut found);
    }
    assert!(found.len() > 30, "{found:?}");
    let pairs: Vec<(String, String)> = found
        .into_iter()
        .map(|(key, value)| {
            let name = format!("{PREFIX}{}", key.to_ascii_uppercase().replace('-', "_"));
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (name, value)
        })
        .collect();
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let from_environment = with("", &pairs).expect("every setting is read");
    let from_file = Config::parse(&text, Path::new("sluice.toml")).expect("valid");
    assert_eq!(format!("{from_environment:?}"), format!("{from_file:?}"));
    assert_eq!(from_environment.geyser.endpoints().len(), 2);
}

#[test]
fn a_variable_is_read_as_what_its_setting_needs() {
    let config = with(
        SHORT,
        &[
            ("SLUICE_CHAIN__EXCHANGE", "stand-in"),
            ("SLUICE_CHAIN__RPC_TIMEOUT_MS", "250"),
            ("SLUICE_CHAIN__UNWRAP_LAMPORTS", "false"),
            ("SLUICE_WEBHOOKS__RETRY_PAUSES_SECS", "[1, 2]"),
            ("SLUICE_GEYSER__ENDPOINTS__0__X_TOKEN_FILE", "/run/secret"),
            (
                "SLUICE_GEYSER__ENDPOINTS__1__URL",
                "https://other.example.com",
            ),
            ("SLUICE_STORE__PATH", ""),
            ("SLUICE_STORE__URL", "postgres://sluice:s3cret@db/sluice"),
            ("SLUICE_VALIDATOR", "/no/setting"),
            ("PATH", "/bin"),
        ],
    )
    .expect("valid");
    assert_eq!(config.chain.exchange, Exchange::StandIn);
    assert_eq!(config.chain.rpc_timeout_ms, 250);
    assert!(!config.chain.unwrap_lamports);
    let pauses = config.webhooks.retry_pauses().expect("given");
    assert_eq!(pauses.len(), 2);
    let endpoints = config.geyser.endpoints();
    let token = endpoints[0].x_token.as_ref().expect("given");
    assert_eq!(token.expose_secret(), "12345", "digits are text here");
    assert_eq!(endpoints[1].url.as_str(), "https://other.example.com/");
    assert!(matches!(config.store.database(), Database::Server(_)));
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn what_is_wrong_is_named_without_its_value() {
    for (pairs, named) in [
        (&[("SLUICE_API__LISTEN", "s3cret")][..], "api.listen"),
        (
            &[("SLUICE_API__RATE_LIMIT_BURST", "s3cret")],
            "api.rate-limit-burst",
        ),
        (&[("SLUICE_CHAIN__RPC_URL", "s3cret")], "chain.rpc-url"),
        (&[("SLUICE_STORE__ULR", "s3cret")], "ulr"),
        (
            &[("SLUICE_STORE__PATH__DEEPER", "s3cret")],
            "SLUICE_STORE__PATH__DEEPER",
        ),
        (
            &[("SLUICE_GEYSER__ENDPOINTS__7__URL", "s3cret")],
            "SLUICE_GEYSER__ENDPOINTS__7__URL",
        ),
        (
            &[("SLUICE_STORE__URL_FILE", "/nowhere")],
            "SLUICE_STORE__URL_FILE",
        ),
        (
            &[
                ("SLUICE_STORE__PATH", "s3cret"),
                ("SLUICE_STORE__PATH_FILE", "/run/secret"),
            ],
            "SLUICE_STORE__PATH_FILE",
        ),
    ] {
        let error = with(SHORT, pairs).expect_err(named);
        assert!(error.contains(named), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn the_files_own_faults_keep_their_line() {
    let broken = SHORT.replace("rpc-url", "rpc-ulr");
    let error = with(&broken, &[]).expect_err("misspelt");
    assert!(
        error.contains("line ") && error.contains("rpc-ulr"),
        "{error}"
    );
    // With variables beside, the setting is named by its key.
    let error = with(&broken, &[("SLUICE_API__LISTEN", "127.0.0.1:1")]).expect_err("misspelt");
    assert!(error.contains("rpc-ulr"), "{error}");
    let table: toml::Table = SHORT.parse().expect("TOML");
    assert!(Config::deserialize(Node::from(toml::Value::Table(table))).is_ok());
}

/// The variables that a file of `deploy/` sets, as a container file, a compose file or a kustomization writes them.
fn variables_of(file: &'static str) -> Vec<(&'static str, &'static str)> {
    let assignment = |line: &'static str| {
        let line = line.trim().trim_end_matches(" \\");
        let line = line.strip_prefix("ENV ").unwrap_or(line);
        let line = line.strip_prefix("- ").unwrap_or(line);
        let (name, value) = line.split_once(['=', ':'])?;
        is_setting(name).then(|| (name, value.trim().trim_matches('"')))
    };
    file.lines().filter_map(assignment).collect()
}

/// What an orchestrator mounts.
fn read_mounted(path: &Path) -> io::Result<String> {
    match path.file_name().and_then(std::ffi::OsStr::to_str) {
        Some("store-url") => {
            Ok("postgres://sluice:pass@postgres/sluice?sslmode=disable\n".to_owned())
        }
        Some("encryption-key") => Ok("BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

#[test]
fn what_deploy_sets_is_a_configuration_without_a_file() {
    let image = variables_of(include_str!("../../../../deploy/container/Dockerfile"));
    assert!(!image.is_empty(), "the container file sets nothing");
    for file in [
        include_str!("../../../../deploy/container/compose.yaml"),
        include_str!("../../../../deploy/kubernetes/kustomization.yaml"),
    ] {
        let set = variables_of(file);
        assert!(set.len() > 3, "{set:?}");
        let is_set = |name| set.iter().any(|(other, _)| *other == name);
        // What is set beside an image replaces what the image sets.
        let kept = image.iter().filter(|(name, _)| !is_set(*name));
        let all: Vec<_> = kept.chain(&set).copied().collect();
        let found = overrides(variables(&all), read_mounted).expect("readable");
        let config = Config::with_overrides("", Path::new("/dev/null"), found).expect("valid");
        assert!(matches!(config.store.database(), Database::Server(_)));
        assert!(config.store.encryption_key().is_some());
        assert!(config.api.listen.ip().is_unspecified());
        assert!(config.indexer.listen.ip().is_unspecified());
    }
}
