//! A service without keys: whom it lets manage webhooks, and until when.

use std::{fs, os::unix::fs::MetadataExt};

use tokio::{process::Command, time::timeout};

use super::{Installation, PATIENCE, text};

/// The user of nobody's programs, by Debian's numbers.
const STRANGER: u32 = 65_534;

/// Lists the webhooks by a connection of its own, with no key, and reads the first line of the answer. Its host is `$0`, its
/// port `$1`.
const ASK: &str = r#"
    exec 3<>"/dev/tcp/$0/$1"
    printf 'GET /api/webhooks HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n' "$0" "$1" >&3
    head -n 1 <&3"#;

/// What a program of this user, or of the service's own, is answered.
async fn answered(installation: &Installation, user: Option<u32>) -> String {
    let address = installation.api.trim_start_matches("http://");
    let (host, port) = address.split_once(':').expect("an address");
    let mut asking = Command::new("bash");
    asking
        .args(["-c", ASK, host, port])
        .current_dir("/")
        .kill_on_drop(true);
    if let Some(user) = user {
        asking.uid(user);
    }
    let output = timeout(PATIENCE, asking.output()).await.expect("in time");
    text(&output.expect("runs").stdout).trim().to_owned()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[tokio::test]
async fn without_keys_the_services_own_user_alone_manages_webhooks_and_after_the_last_key_nobody() {
    const SERVED: &str = "HTTP/1.1 200 OK";
    const REFUSED: &str = "HTTP/1.1 401 Unauthorized";
    let installation = Installation::new().await;
    let _api = installation.serve().await;
    assert_eq!(answered(&installation, None).await, SERVED);
    // Who is not root cannot be another user.
    if is_root() {
        assert_eq!(answered(&installation, Some(STRANGER)).await, REFUSED);
    }
    installation.key("first").await;
    assert_eq!(answered(&installation, None).await, REFUSED);
    let revoked = installation.run(&["keys", "revoke", "first"]).await;
    assert!(revoked.status.success(), "{revoked:?}");
    assert_eq!(answered(&installation, None).await, REFUSED);
}
