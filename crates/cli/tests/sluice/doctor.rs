//! `sluice init` and `sluice doctor`: a configuration that is written, and what is wrong with one.

use std::time::Duration;

use serde_json::json;
use sluice_testkit::{
    rpc_node::RpcNode,
    running_chain::{Running, RunningChain},
    yellowstone_server::FilterLimits,
};
use solana_hash::Hash;

use super::{Installation, database, text};

#[tokio::test]
async fn init_writes_a_configuration_that_the_doctor_reads_and_replaces_none() {
    let installation = Installation::new().await;
    let file = "made/by/init.toml";
    let made = installation.folder.path().join(file);
    std::fs::create_dir_all(made.parent().expect("a folder")).expect("made");
    for cluster in ["localnet", "devnet", "mainnet"] {
        let init = ["init", "--cluster", cluster, "--config", file];
        let output = installation.run(&init).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mode = std::fs::metadata(&made).expect("written").permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
            0o600
        );
        let written = std::fs::read_to_string(&made).expect("a text");
        let again = installation.run(&init).await;
        assert!(!again.status.success());
        assert!(
            text(&again.stderr).contains("is there already"),
            "{}",
            text(&again.stderr)
        );
        assert_eq!(std::fs::read_to_string(&made).expect("a text"), written);
        // Nothing answers at these addresses, which the doctor finds out only from a file that it has read.
        let doctor = installation.run(&["doctor", "--config", file]).await;
        assert!(
            text(&doctor.stdout).contains("RPC node"),
            "{}",
            text(&doctor.stderr)
        );
        std::fs::remove_file(&made).expect("removed");
    }
}

#[tokio::test]
async fn the_doctor_says_what_to_do_of_each_failure_and_makes_nothing() {
    let installation = Installation::new().await;
    let checked = installation.run(&["doctor"]).await;
    assert!(!checked.status.success(), "{checked:?}");
    let said = text(&checked.stdout);
    for line in [
        "FAILED   RPC node: the node at chain.rpc-url does not answer",
        "to do: start the node, or correct chain.rpc-url",
        "FAILED   stream 127.0.0.1:1: cannot connect to the stream",
        "ok       database: ",
        "sluice.db will be created",
    ] {
        assert!(said.contains(line), "no {line:?} in: {said}");
    }
    let failed = text(&checked.stderr);
    assert!(failed.contains("2 of 4 checks failed"), "{failed}");
    assert!(!database(installation.folder.path()).exists());

    installation.store().await.close().await;
    let said = text(&installation.run(&["doctor"]).await.stdout);
    assert!(said.contains("ok       database: schema "), "{said}");
}

#[tokio::test]
async fn the_doctor_names_each_node_that_transactions_are_sent_to_and_what_is_wrong_with_it() {
    let node = async |cluster: &[u8]| {
        let node = RpcNode::holding([]).await.expect("a free port");
        if let Ok(cluster) = <[u8; 32]>::try_from(cluster) {
            let genesis = Hash::new_from_array(cluster).to_string();
            node.script("getGenesisHash", genesis.into());
        }
        node.reach(7);
        node
    };
    let (main, same, foreign) = (
        node(&[1; 32]).await,
        node(&[1; 32]).await,
        node(&[2; 32]).await,
    );
    // It takes transactions, and nothing else.
    let silent = node(&[]).await;
    main.script(
        "getVersion",
        json!({"solana-core": "3.0.0", "feature-set": 1}),
    );
    main.script("getHealth", "ok".into());
    let away = "http://user:p4ssw0rd@127.0.0.1:1/?api-key=k3y".to_owned();
    let urls = [same.url(), foreign.url(), silent.url(), away];
    let installation = Installation::new().await;
    let file = installation.folder.path().join("sluice.toml");
    let text_of_file = std::fs::read_to_string(&file).expect("a text");
    let chain = format!("rpc-url = {:?}\nsend-urls = {urls:?}\n", main.url());
    let changed = text_of_file.replacen("rpc-url = \"http://127.0.0.1:1\"\n", &chain, 1);
    std::fs::write(&file, changed).expect("writes");
    let checked = installation.run(&["doctor"]).await;
    let said = text(&checked.stdout);
    for line in [
        format!("ok       send node {}: slot 7", same.url()),
        format!(
            "FAILED   send node {}: it is of another cluster",
            foreign.url()
        ),
        format!("warning  send node {}: it does not say", silent.url()),
        "FAILED   send node http://127.0.0.1:1: it does not answer".to_owned(),
    ] {
        assert!(said.contains(&line), "no {line:?} in: {said}");
    }
    let all = format!("{said}{}", text(&checked.stderr));
    assert!(!all.contains("k3y") && !all.contains("p4ssw0rd"), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_says_how_far_away_a_server_is_and_what_it_takes() {
    let node = RpcNode::holding([]).await.expect("a free port");
    // Longer than an answer takes where other tests keep the machine busy.
    let running = Running::at_once(100, Duration::from_millis(200));
    let chain = RunningChain::start(node, running).await;
    let chain = chain.expect("a free port");
    let server = chain.server();
    server.configure(|settings| {
        settings.limits = FilterLimits {
            account_max: Some(40),
            owner_max: Some(3),
            account_include_max: Some(25),
            ..FilterLimits::default()
        };
    });
    let installation = Installation::new().await;
    let file = installation.folder.path().join("sluice.toml");
    let written = std::fs::read_to_string(&file).expect("a text");
    let (before, after) = written
        .split_once("[[geyser.endpoints]]\nurl = \"http://127.0.0.1:1\"\n")
        .expect("one server");
    let configure = |probes: bool| {
        let url = &server.endpoint().url;
        let geyser =
            format!("[geyser]\nprobe-limits = {probes}\n[[geyser.endpoints]]\nurl = \"{url}\"\n");
        std::fs::write(&file, format!("{before}{geyser}{after}")).expect("writes");
    };
    let name = server.endpoint().name();
    configure(true);
    let said = text(&installation.run(&["doctor"]).await.stdout);
    for line in [
        format!(" stream {name}: slot "),
        format!(" latency of stream {name}: answers in "),
        format!(
            "ok       limits of stream {name}: of one request: accounts: 40, programs: 3, accounts of transactions: 25\n"
        ),
        " ms, a slot takes ".to_owned(),
    ] {
        assert!(said.contains(&line), "no {line:?} in: {said}");
    }

    server.configure(|settings| settings.limits.accounts_any = false);
    let said = text(&installation.run(&["doctor"]).await.stdout);
    let refused = format!("FAILED   limits of stream {name}: ");
    assert!(said.contains(&refused), "{said}");
    let remedy = "to do: set geyser.watch-closed-accounts to false";
    assert!(said.contains(remedy), "{said}");

    configure(false);
    let asked = server.requests().len();
    let said = text(&installation.run(&["doctor"]).await.stdout);
    assert!(!said.contains("limits of stream"), "{said}");
    assert_eq!(server.requests().len(), asked + 1, "it was tried");
}
