//! The running service: its limit of open files, its log, and a backup of it.

use std::{os::unix::fs::PermissionsExt, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use super::{Installation, PATIENCE, database, text};

/// The lines of a log up to the first that the reader wants.
async fn logged(child: &mut Child, mut is_wanted: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut read = Vec::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.expect("reads") {
            let is_last = is_wanted(&line);
            read.push(line);
            if is_last {
                break;
            }
        }
    };
    timeout(PATIENCE, reading).await.expect("in time");
    read
}

#[tokio::test]
async fn a_service_raises_its_limit_of_open_files_and_logs_objects_where_that_is_asked() {
    for (service, last) in [("api", "API listening"), ("indexer", "the indexer runs")] {
        raises_its_limit_and_logs_objects(service, last).await;
    }
}

/// A service that may have few files open, up to this line of its log.
async fn raises_its_limit_and_logs_objects(service: &str, last: &str) {
    let installation = Installation::new().await;
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -Sn 300; exec \"$0\" \"$@\""])
        .args([env!("CARGO_BIN_EXE_sluice"), service])
        .current_dir(installation.folder.path())
        .env("SLUICE_LOG_FORMAT", "json")
        .env("SLUICE_INDEXER__LISTEN", "127.0.0.1:0")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut service = command.spawn().expect("runs");
    let lines = logged(&mut service, |line| line.contains(last)).await;
    for line in &lines {
        let object: serde_json::Value = serde_json::from_str(line).expect("an object a line");
        assert!(object["level"].is_string(), "{line}");
        assert!(object["fields"]["message"].is_string(), "{line}");
    }
    let process = service.id().expect("it runs");
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).expect("limits");
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let numbers: Vec<_> = files.expect("a limit").split_whitespace().collect();
    assert_ne!(numbers[3], "300", "{numbers:?}");
    assert_eq!(numbers[3], numbers[4], "the hard limit is reached");
}

#[tokio::test]
async fn a_backup_of_a_running_api_is_restored_into_a_new_installation() {
    let installation = Installation::new().await;
    let missing = installation.run(&["backup", "first"]).await;
    assert!(
        text(&missing.stderr).contains("there is no database"),
        "{missing:?}"
    );
    assert!(!database(installation.folder.path()).exists());
    installation.key("somebody").await;
    let _api = installation.serve().await;
    let backup = installation.folder.path().join("first");
    let made = installation.run(&["backup", "first"]).await;
    assert!(made.status.success(), "{made:?}");
    assert!(
        text(&made.stdout).contains("holds 0 webhooks and 0 messages"),
        "{made:?}"
    );
    let mode = std::fs::metadata(&backup).expect("is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let again = installation.run(&["backup", "first"]).await;
    assert!(
        text(&again.stderr).contains("there is a file already"),
        "{again:?}"
    );

    let other = Installation::new().await;
    let backup = backup.to_str().expect("a path");
    let restored = other.run(&["restore", backup]).await;
    assert!(restored.status.success(), "{restored:?}");
    let listed = text(&other.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("somebody"), "{listed}");
    let refused = other.run(&["restore", backup]).await;
    assert!(
        text(&refused.stderr).contains("the store has API keys already"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_new_store_needs_no_word_that_the_release_before_is_gone() {
    let installation = Installation::new().await;
    let said = installation.run(&["share-bodies"]).await;
    assert!(said.status.success(), "{said:?}");
    assert!(
        text(&said.stdout).contains("stored once already"),
        "{said:?}"
    );
}
