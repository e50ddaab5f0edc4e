//! Endings: what a stream ends with, each told from the others, and a subscription that never begins.

use std::time::Duration;

use bytes::Bytes;
use sluice_geyser::{
    Request, Stream, StreamError, limits,
    scripted::{Code, ScriptedServer},
};

use crate::{account, opened, request, soon};

/// The error a stream ends with when the server fails it with this status.
async fn failed_with(request: Request, code: Code, text: &str) -> StreamError {
    let (_server, connection, mut stream) = opened(request).await;
    soon(connection.fail(code, text))
        .await
        .expect("the client listens");
    let error = soon(stream.next())
        .await
        .expect_err("the server failed the stream");
    assert_eq!(
        soon(stream.next()).await,
        Err(StreamError::Closed),
        "an error is reported once"
    );
    error
}

#[tokio::test]
async fn the_two_meanings_of_out_of_range_are_distinguished() {
    let gone = "broadcast from 77 is not available, last available: 250";
    let request = Request {
        from_slot: Some(77),
        ..request()
    };
    let error = failed_with(request.clone(), Code::OutOfRange, gone).await;
    assert!(
        matches!(
            error,
            StreamError::ReplayUnavailable {
                first_available: Some(250),
                ..
            }
        ),
        "{error}"
    );

    let (_server, connection, mut stream) = opened(request).await;
    let huge = account(1, Bytes::from(vec![0; limits::MAX_MESSAGE_BYTES + 1]));
    soon(connection.send(huge))
        .await
        .expect("the client listens");
    let error = soon(stream.next())
        .await
        .expect_err("larger than the limit");
    assert!(matches!(error, StreamError::TooLarge(_)), "{error}");
}

#[tokio::test]
async fn lag_is_distinguished_from_other_internal_errors() {
    let lagged = failed_with(
        request(),
        Code::Internal,
        "lagged to receive geyser messages",
    )
    .await;
    assert!(matches!(lagged, StreamError::Lagged(_)), "{lagged}");
    let other = failed_with(request(), Code::Internal, "boom").await;
    assert!(matches!(other, StreamError::Other(_)), "{other}");
    let replay = failed_with(request(), Code::Internal, "failed to get replay response").await;
    assert!(replay.is_replay_unavailable(), "{replay}");
}

#[tokio::test]
async fn an_end_without_error_is_closed() {
    let (_server, connection, mut stream) = opened(request()).await;
    drop(connection);
    assert_eq!(soon(stream.next()).await, Err(StreamError::Closed));
}

#[tokio::test]
async fn a_message_without_content_breaks_the_protocol() {
    let (_server, connection, mut stream) = opened(request()).await;
    soon(connection.send_garbage())
        .await
        .expect("the client listens");
    let error = soon(stream.next()).await.expect_err("not an update");
    assert!(matches!(error, StreamError::Protocol(_)), "{error}");
}

#[tokio::test]
async fn silence_ends_the_stream_and_pings_are_not_silence() {
    /// Three times the pause between two pings: on a busy machine they come late.
    const SILENCE: Duration = Duration::from_secs(3);
    let mut server = ScriptedServer::start().await.expect("a loopback port");
    let endpoint = server.endpoint();
    let opening = Stream::open_with(&endpoint, request(), SILENCE);
    let mut stream = soon(opening).await.expect("accepted");
    let connection = soon(server.accept()).await;
    let started = tokio::time::Instant::now();
    for _ in 0..5 {
        tokio::time::sleep(SILENCE / 3).await;
        soon(connection.ping()).await.expect("the client listens");
    }
    let error = soon(stream.next()).await.expect_err("silent");
    assert_eq!(error, StreamError::Stalled(SILENCE));
    assert!(
        started.elapsed() >= SILENCE / 3 * 5 + SILENCE / 2,
        "pings did not count"
    );
}

#[tokio::test]
async fn a_refused_subscription_is_not_retryable_and_says_why() {
    let server = ScriptedServer::start().await.expect("a loopback port");
    server.refuse_next(Code::Unauthenticated, "no valid auth token");
    let error = soon(Stream::open(&server.endpoint(), request()))
        .await
        .expect_err("refused");
    assert!(!error.is_retryable());
    assert!(error.to_string().contains("no valid auth token"), "{error}");
}

#[tokio::test]
async fn a_closed_port_is_a_connection_error() {
    let endpoint = {
        let server = ScriptedServer::start().await.expect("a loopback port");
        server.endpoint()
    };
    // The port is free again once the dropped server's task has ended.
    let address = endpoint.url.socket_addrs(|| None).expect("an address")[0];
    let closed = async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    soon(closed).await;
    let error = soon(Stream::open(&endpoint, request()))
        .await
        .expect_err("the port is closed");
    assert!(matches!(error, StreamError::Connect(_)), "{error}");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let (_server, mut connection, stream) = opened(request()).await;
    soon(connection.received()).await.expect("the subscription");
    drop(stream);
    assert_eq!(soon(connection.received()).await, None);
}
