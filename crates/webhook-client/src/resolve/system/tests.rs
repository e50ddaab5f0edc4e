use std::{fs, net::SocketAddr};

use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use tokio::net::UdpSocket;

use super::*;

/// The address that the name server gives to every name.
const GIVEN: [u8; 4] = [192, 0, 2, 7];

/// A resolver that knows the name server at this address alone.
fn asking(server: SocketAddr) -> ResolverBuilder<TokioRuntimeProvider> {
    let mut config = NameServerConfig::udp(server.ip());
    for connection in &mut config.connections {
        connection.port = server.port();
    }
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![config]);
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
}

async fn server() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let address = socket.local_addr().expect("is bound");
    (socket, address)
}

/// The answer to a question: the address for type A, and no record for another.
fn answer(question: &[u8]) -> Vec<u8> {
    let end = 12
        + question[12..]
            .iter()
            .position(|&byte| byte == 0)
            .expect("a name")
        + 5;
    let is_a = question[end - 4..end - 2] == [0, 1];
    let mut answer = question[..end].to_vec();
    answer[2..4].copy_from_slice(&[0x81, 0x80]);
    answer[4..12].copy_from_slice(&[0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    if is_a {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(GIVEN);
    }
    answer
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("Linux").count()
}

fn sockets() -> usize {
    let files = fs::read_dir("/proc/self/fd").expect("Linux");
    files
        .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count()
}

#[tokio::test]
async fn a_name_server_is_asked_for_the_addresses_of_a_name() {
    let (socket, address) = server().await;
    let serving = tokio::spawn(async move {
        let mut question = [0; 512];
        loop {
            let (length, asker) = socket.recv_from(&mut question).await.expect("receives");
            let answer = answer(&question[..length]);
            socket.send_to(&answer, asker).await.expect("sends");
        }
    });
    let found = lookup(
        Ok(asking(address)),
        "receiver.example.".to_owned(),
        DEADLINE,
    )
    .await;
    assert_eq!(found.expect("is answered"), [IpAddr::from(GIVEN)]);
    serving.abort();
}

#[tokio::test]
async fn a_name_server_that_keeps_silent_holds_no_thread_and_no_socket_past_the_deadline() {
    const NAMES: usize = 64;
    const SHORT: Duration = Duration::from_millis(300);
    let (silent, address) = server().await;
    let (threads_before, sockets_before) = (threads(), sockets());
    let lookups = (0..NAMES).map(|number| {
        let name = format!("receiver{number}.example.");
        tokio::spawn(lookup(Ok(asking(address)), name, SHORT))
    });
    let lookups: Vec<_> = lookups.collect();
    let mut question = [0; 512];
    silent.recv_from(&mut question).await.expect("is asked");
    assert!(threads() <= threads_before, "no thread waits for an answer");
    for lookup in lookups {
        let error = lookup.await.expect("ends").expect_err("no answer");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
    // What was spawned for the questions ends with those who asked.
    for _ in 0..1_000 {
        if sockets() <= sockets_before {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} sockets are left", sockets() - sockets_before);
}

#[tokio::test]
async fn the_names_of_this_machine_need_no_server() {
    let found = SystemResolver.lookup("localhost").await.expect("is known");
    assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
}
