//! Connection that speaks HTTP/2: its requests, each a task, and whether its other end is still there.

use std::time::Duration;

use bytes::Bytes;
use h2::{Ping, PingPong, server::Builder};
use service_kit::CancellationToken;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    pin,
    time::{sleep, timeout},
};

use super::{exchange, scope::ConnectionScope};
use crate::server::{MOST_UNSENT, requests::Requests};

/// Requests and streams of a connection at a time: what the protocol recommends at least.
const MOST_AT_ONCE: u32 = 100;

/// Bytes of bodies that a connection may send before they are read, of one request and of all: the protocol's own for one, which
/// holds any body that is taken but the longest, and no multiple of it for each of a hundred.
const REQUEST_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 4 * REQUEST_WINDOW;

/// Bytes of the headers of a request, as they count for the protocol: as many as common servers take.
const MOST_HEADERS: u32 = 16 * 1024;

/// How often a connection is asked whether its other end is there, which a stream of events need not tell for as long as the
/// kernel takes them in; and how long the answer may take.
const ALIVE_EVERY: Duration = Duration::from_secs(20);
const ALIVE_WITHIN: Duration = Duration::from_secs(20);

/// Serves requests until the client ends the connection or is gone, or, from `ending` on, until those under way are answered.
///
/// # Errors
/// When the client breaks the protocol, or the connection breaks.
pub(in crate::server) async fn serve<C>(
    connection: C,
    requests: Requests,
    ending: CancellationToken,
) -> Result<(), h2::Error>
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = builder().handshake::<C, Bytes>(connection).await?;
    let scope = ConnectionScope::default();
    let pings = connection.ping_pong();
    let gone = until_gone(pings.expect("nobody else has taken it"));
    let ended = ending.cancelled();
    pin!(gone, ended);
    let mut is_ending = false;
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(accepted) = accepted else {
                    return Ok(());
                };
                let (request, respond) = accepted?;
                tokio::spawn(exchange::of(request, respond, &requests, &scope));
            }
            () = &mut ended, if !is_ending => {
                is_ending = true;
                connection.graceful_shutdown();
            }
            () = &mut gone => return Ok(()),
        }
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(MOST_AT_ONCE)
        .initial_window_size(REQUEST_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(MOST_HEADERS)
        .max_send_buffer_size(MOST_UNSENT as usize)
        // WebSockets, each of which is a stream.
        .enable_connect_protocol();
    builder
}

/// Waits until the other end does not answer any more.
async fn until_gone(mut pings: PingPong) {
    loop {
        sleep(ALIVE_EVERY).await;
        let answered = timeout(ALIVE_WITHIN, pings.ping(Ping::opaque())).await;
        if !matches!(answered, Ok(Ok(_))) {
            return;
        }
    }
}
