//! Poolers: one that lets two processes lead, or keeps a session's settings back, is refused.
//!
//! The pooler is played, in PostgreSQL's own protocol: it shares its connections as pgbouncer does in transaction mode.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::PermissionsExt,
    sync::Arc,
};

use sluice_store::{
    Store,
    testing::{Disk, PrivateCluster},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Mutex, OwnedMutexGuard},
};

/// Request for encryption, in the place of the protocol's version.
const SSL_REQUEST: u32 = 80_877_103;

/// Version 3.0 of the protocol.
const PROTOCOL: u32 = 196_608;

/// What a pooler does that leaves out the settings of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Gives every transaction the same connection.
    Transaction,
    /// Gives every client a connection of its own.
    Session,
    /// Refuses a client that brings settings.
    Refuses,
}

/// A message: its type and all of it.
async fn message(from: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let kind = from.read_u8().await?;
    let length = from.read_u32().await?;
    let mut whole = vec![kind];
    whole.extend(length.to_be_bytes());
    whole.resize(usize::try_from(length).expect("small") + 1, 0);
    from.read_exact(&mut whole[5..]).await?;
    Ok((kind, whole))
}

fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut whole = vec![kind];
    whole.extend(u32::try_from(body.len() + 4).expect("small").to_be_bytes());
    whole.extend(body);
    whole
}

/// A connection to the server, without settings.
async fn upstream(server: SocketAddr, database: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(server).await?;
    let mut body = PROTOCOL.to_be_bytes().to_vec();
    body.extend(format!("user\0sluice\0database\0{database}\0\0").as_bytes());
    stream
        .write_u32(u32::try_from(body.len() + 4).expect("small"))
        .await?;
    stream.write_all(&body).await?;
    while message(&mut stream).await?.0 != b'Z' {}
    Ok(stream)
}

/// Reads how a client begins, and welcomes or refuses it.
async fn begin(client: &mut TcpStream, mode: Mode) -> io::Result<()> {
    loop {
        let length = client.read_u32().await?;
        let code = client.read_u32().await?;
        let mut rest = vec![0; usize::try_from(length).expect("small") - 8];
        client.read_exact(&mut rest).await?;
        if code != SSL_REQUEST {
            break;
        }
        client.write_u8(b'N').await?;
    }
    if mode == Mode::Refuses {
        let text = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0";
        return client.write_all(&framed(b'E', text)).await;
    }
    client.write_all(&framed(b'R', &[0; 4])).await?;
    client.write_all(&framed(b'K', &[7; 8])).await?;
    client.write_all(&framed(b'Z', b"I")).await
}

/// Serves a client until it goes.
async fn serve(mut client: TcpStream, shared: Arc<Mutex<TcpStream>>, mode: Mode) -> io::Result<()> {
    begin(&mut client, mode).await?;
    let mut held: Option<OwnedMutexGuard<TcpStream>> = None;
    loop {
        let (kind, whole) = message(&mut client).await?;
        if kind == b'X' {
            return Ok(());
        }
        let server = match &mut held {
            Some(server) => server,
            None => held.insert(Arc::clone(&shared).lock_owned().await),
        };
        server.write_all(&whole).await?;
        // A query, or the end of a group of messages: now the server answers.
        if !matches!(kind, b'Q' | b'S') {
            continue;
        }
        loop {
            let (kind, whole) = message(server).await?;
            client.write_all(&whole).await?;
            if kind == b'Z' {
                if whole.last() == Some(&b'I') {
                    held = None;
                }
                break;
            }
        }
    }
}

/// A pooler before a database of this server.
async fn pooler(server: SocketAddr, database: &'static str, mode: Mode) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("is bound");
    tokio::spawn(async move {
        let mut shared = None;
        while let Ok((client, _)) = listener.accept().await {
            if mode == Mode::Session || shared.is_none() {
                let connection = upstream(server, database).await.expect("connects");
                shared = Some(Arc::new(Mutex::new(connection)));
            }
            if let Some(shared) = shared.clone() {
                tokio::spawn(serve(client, shared, mode));
            }
        }
    });
    address
}

#[tokio::test]
async fn a_pooler_that_would_undo_leadership_is_refused_with_the_reason() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary folder");
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("is entered");
    let port = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let server = port.local_addr().expect("is bound");
    drop(port);
    let place = folder.path().join("cluster");
    let cluster = PrivateCluster::start_on_port(&place, Disk::DoesNotWait, server.port());
    let cluster = cluster.expect("PostgreSQL starts");
    cluster.create_database("own").await.expect("creates");

    for (mode, reason) in [
        (Mode::Transaction, "shares its connections"),
        (Mode::Session, "idle_in_transaction_session_timeout"),
        (Mode::Refuses, "idle_in_transaction_session_timeout"),
    ] {
        let address = pooler(server, "own", mode).await;
        let opened = Store::connect(&PrivateCluster::url_at(address, "own")).await;
        let error = opened.expect_err("is refused").to_string();
        assert!(
            error.contains(reason) && error.contains("store.url"),
            "{mode:?}: {error}"
        );
    }
    let direct = Store::connect(&PrivateCluster::url_at(server, "own")).await;
    direct.expect("the server itself is taken");
}
