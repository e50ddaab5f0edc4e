//! Connection: which protocol its client speaks, and its requests until one of both ends it.

use std::{
    fmt::Display,
    io,
    pin::{Pin, pin},
    time::Duration,
};

use futures::future::OptionFuture;
use hyper::{
    server::conn::http1::{self, UpgradeableConnection},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use service_kit::CancellationToken;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    Deadlines, MOST_UNSENT, http2, idle, requests::Requests, write_deadline::WriteDeadline,
};

/// What a client begins with that speaks HTTP/2 (RFC 9113, 3.4): the method is that of no request.
const HTTP_2: [u8; 3] = *b"PRI";

/// How often, and when, it is looked again where less than that has come: clients send it in one packet, and a crowd that sends
/// a byte each must not keep the server looking.
const LOOKS: usize = 10;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Serves one connection to its end, or until it is given away.
pub(super) async fn serve(
    stream: TcpStream,
    requests: Requests,
    watched: idle::Connection,
    deadlines: Deadlines,
    shutdown: CancellationToken,
) {
    // An answer of several packets must not wait for the acknowledgement of its first.
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(MOST_UNSENT);
    let spoken = tokio::select! {
        spoken = timeout(deadlines.head, is_http2(&stream)) => spoken,
        () = watched.gives_way() => return,
        () = shutdown.cancelled() => return,
    };
    let Ok(Ok(is_http2)) = spoken else {
        return;
    };
    let stream = WriteDeadline::new(stream, deadlines.write);
    if is_http2 {
        // In slices the protocol's library writes each frame of more than 255 bytes by itself (crate `h2`, `framed_write.rs`).
        let stream = stream.without_slices();
        let ending = CancellationToken::new();
        // On the heap, so that a connection that speaks HTTP/1.1 does not keep the room of one that carries many streams.
        let mut serving = Box::pin(http2::serve(stream, requests, ending.clone()));
        let most_idle = Some(deadlines.head);
        let serving = serving.as_mut();
        until_end(serving, |_| ending.cancel(), &watched, most_idle, &shutdown).await;
    } else {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new());
        builder.header_read_timeout(deadlines.head);
        let service = service_fn(move |request| requests.answer_over_http1(request));
        let stream = TokioIo::new(stream);
        let serving = pin!(builder.serve_connection(stream, service).with_upgrades());
        // The deadline for the head of a request ends one that is idle.
        let end = UpgradeableConnection::graceful_shutdown;
        until_end(serving, end, &watched, None, &shutdown).await;
    }
}

/// Whether the client speaks HTTP/2, once it has said something.
async fn is_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut begin = [0; HTTP_2.len()];
    for _ in 0..LOOKS {
        let length = stream.peek(&mut begin).await?;
        let said = &begin[..length];
        let may_be = !said.is_empty() && HTTP_2.starts_with(said);
        if said == HTTP_2 || !may_be {
            return Ok(may_be);
        }
        sleep(LOOK_AGAIN).await;
    }
    Ok(false)
}

/// Waits until a connection has ended. At `shutdown`, and when it has been idle for longer than it may, where that is said, it takes
/// no more requests and ends when those under way are answered, or, with a client that leaves it open, when it has been idle for
/// as long again. One that gives way ends at once.
async fn until_end<S, E>(
    mut serving: Pin<&mut S>,
    end: impl FnOnce(Pin<&mut S>),
    watched: &idle::Connection,
    most_idle: Option<Duration>,
    shutdown: &CancellationToken,
) where
    S: Future<Output = Result<(), E>>,
    E: Display,
{
    let is_idle = || OptionFuture::from(most_idle.map(|time| watched.is_idle_for(time)));
    let ended = tokio::select! {
        ended = serving.as_mut() => Some(ended),
        () = watched.gives_way() => return,
        () = shutdown.cancelled() => None,
        Some(()) = is_idle() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            end(serving.as_mut());
            tokio::select! {
                ended = serving => ended,
                () = watched.gives_way() => return,
                Some(()) = is_idle() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
