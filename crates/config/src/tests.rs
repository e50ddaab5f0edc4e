//! Configuration: the sample loads, and each setting that is out of range is refused by its name.

use super::*;

const MINIMAL: &str = r#"
    [chain]
    rpc-url = "http://127.0.0.1:8899"
    [[geyser.endpoints]]
    url = "http://127.0.0.1:10000"
    [store]
    path = "sluice.db"
"#;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("sluice.toml"))
}

#[test]
fn the_example_file_loads() {
    // From the folder of this package, in which its tests run.
    let path = Path::new("../../sluice.example.toml");
    let config = Config::load(path).expect("the example is valid");
    assert!(config.api.listen.ip().is_loopback());
}

#[test]
fn defaults_are_safe() {
    let config = parse(MINIMAL).expect("minimal file is valid");
    assert!(!config.webhooks.allow_http_loopback);
    assert!(config.api.listen.ip().is_loopback());
    assert!(!config.api.keyless);
    assert!(config.indexer.listen.ip().is_loopback());
}

#[test]
fn rejects_an_unknown_key_and_names_it() {
    let error = parse(&MINIMAL.replace("rpc-url", "rpc-ulr")).expect_err("misspelt key");
    assert!(error.to_string().contains("rpc-ulr"), "{error}");
}

#[test]
fn the_nodes_to_send_to_are_few_and_have_urls() {
    let with =
        |urls: &str| parse(&MINIMAL.replace("[chain]", &format!("[chain]\nsend-urls = {urls}")));
    let config = with("[\"https://one.example/?key=s3cret\"]").expect("valid");
    assert_eq!(config.chain.send_urls.len(), 1);
    assert_eq!(parse(MINIMAL).expect("valid").chain.send_urls, []);
    let eight = format!("[{}]", ["\"http://127.0.0.1:1\""; 8].join(","));
    for bad in ["[\"ftp://s3cret\"]", &eight] {
        let error = with(bad).expect_err("refused").to_string();
        assert!(error.contains("chain.send-urls"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn a_demo_wallet_is_for_a_keyless_localnet_alone() {
    let with = |url: &str, api: &str| {
        let text = MINIMAL.replace("http://127.0.0.1:8899", url);
        parse(&format!(
            "{text}\n[api]\ndemo-wallet = \"wallet.json\"\n{api}"
        ))
    };
    for url in [
        "http://127.0.0.1:8899",
        "http://localhost:8899",
        "http://[::1]:1",
    ] {
        assert!(with(url, "keyless = true").is_ok(), "{url}");
        let error = with(url, "").expect_err("with keys").to_string();
        assert!(error.contains("api.demo-wallet"), "{error}");
    }
    for url in [
        "https://mainnet.example.com",
        "http://10.0.0.1:8899",
        "http://localhost.example.com",
    ] {
        let error = with(url, "keyless = true")
            .expect_err("elsewhere")
            .to_string();
        assert!(error.contains("api.demo-wallet"), "{error}");
    }
}

#[test]
fn exactly_one_database_is_named() {
    let with = |store: &str| parse(&MINIMAL.replace("path = \"sluice.db\"", store));
    let url = "url = \"postgres://sluice:s3cret@db/sluice\"";
    let server = with(url).expect("valid");
    assert!(matches!(server.store.database(), Database::Server(_)));
    assert!(!format!("{server:?}").contains("s3cret"));
    let file = parse(MINIMAL).expect("valid");
    assert!(matches!(file.store.database(), Database::File(_)));
    for bad in [
        String::new(),
        format!("{url}\npath = \"sluice.db\""),
        "url = \"mysql://s3cret\"".to_owned(),
    ] {
        let error = with(&bad).expect_err("refused").to_string();
        assert!(
            error.contains("store") && !error.contains("s3cret"),
            "{error}"
        );
    }
}

#[test]
fn errors_and_debug_output_do_not_show_the_token() {
    let config = parse(&MINIMAL.replace("[store]", "x-token = \"s3cret\"\n[store]"))
        .expect("token is allowed");
    assert!(!format!("{config:?}").contains("s3cret"));
    let error = parse(&MINIMAL.replace("[store]", "x-tokn = \"s3cret\"\n[store]"))
        .expect_err("misspelt key");
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

#[test]
fn rejects_a_timeout_past_the_limit() {
    let at = format!("{MINIMAL}\n[webhooks]\ndelivery-timeout-secs = 30");
    assert!(parse(&at).is_ok());
    let past = format!("{MINIMAL}\n[webhooks]\ndelivery-timeout-secs = 31");
    assert!(matches!(parse(&past), Err(ConfigError::Range { .. })));
}

#[test]
fn limits_outside_their_range_are_refused_by_name() {
    for (section, setting) in [
        ("api", "rate-limit-per-minute = 0"),
        ("api", "rate-limit-burst = 0"),
        ("api", "keyless = true\nlisten = \"0.0.0.0:8787\""),
        ("webhooks", "secret-overlap-hours = 169"),
        ("webhooks", "retry-pauses-secs = [604801]"),
        ("webhooks", "tests-per-minute = 0"),
        ("webhooks", "max-per-key = 0"),
        ("webhooks", "max-accounts = 0"),
        ("webhooks", "max-programs = 1000001"),
        ("freshness", "max-clock-age-secs = 0"),
        ("freshness", "max-clock-age-secs = 3601"),
        ("freshness", "max-slots-behind = 0"),
        ("freshness", "max-slots-behind = 9001"),
        ("indexer", "backfill-calls-per-second = 1001"),
        ("indexer", "longest-standstill-secs = 0"),
        ("indexer", "longest-standstill-secs = 3601"),
        ("bootstrap", "idle-timeout-secs = 0"),
        ("bootstrap", "answer-timeout-secs = 86401"),
        ("bootstrap", "parallel-calls = 0"),
        ("bootstrap", "parallel-calls = 257"),
        ("telemetry", "trace-ratio = 1.01"),
        ("telemetry", "trace-ratio = nan"),
        ("telemetry", "otlp-endpoint = \"collector:4318\""),
        ("telemetry", "otlp-endpoint = \"no URL\""),
    ] {
        let text = format!("{MINIMAL}\n[{section}]\n{setting}");
        let error = parse(&text).expect_err(setting);
        let name = setting.split(' ').next().expect("a name");
        let line = format!("line {}", text.lines().count());
        let named = error.to_string();
        assert!(named.contains(name) || named.contains(&line), "{error}");
    }
}
