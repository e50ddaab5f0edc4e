//! Server: connections that speak HTTP/1.1 or HTTP/2, no more than are allowed, each with deadlines that end one that drips.

mod connection;
pub mod http2;
mod idle;
mod patience;
mod requests;
mod streamed_body;
mod unread_body;
mod write_deadline;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use service_kit::CancellationToken;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::mpsc,
    task::JoinSet,
};

use self::{idle::IdleConnections, requests::Requests};
use crate::{
    client::Here,
    middleware::Surrounded,
    places::{Place, Places},
};

/// Pause after a connection could not be accepted because the process has no more files to open: others end meanwhile.
const NO_FILES_PAUSE: Duration = Duration::from_millis(100);

/// Most bytes of answers that a connection's kernel buffer holds unsent, besides those on their way: an answer of every route
/// but the description's fits, and of a stream whose reader stands still a dozen events wait instead of thousands.
const MOST_UNSENT: u32 = 16 * 1024;

/// Most connections that the kernel completes before they are taken in; it holds no more than it is set to, by itself 4,096.
/// One that comes when they are that many is dropped, and its client asks again only after a second.
const BACKLOG: u32 = 16 * 1024;

/// Listens at `address`, where a server that has just ended may have listened.
///
/// # Errors
/// When the address is not this machine's or is taken.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// How long a connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// For the head of a request, from the opening of the connection or from the answer before it.
    pub head: Duration,
    /// To take in some bytes of an answer.
    pub write: Duration,
}

/// What counts a connection as open, and is waited for at the end: the server holds it while it speaks HTTP on the
/// connection, and a WebSocket, for which the server gives the connection away, for as long as it lasts.
#[derive(Clone)]
pub struct Hold {
    _held: Arc<(Place, mpsc::Sender<Infallible>)>,
}

impl Hold {
    fn new(place: Place, open: &mpsc::Sender<Infallible>) -> Self {
        Self {
            _held: Arc::new((place, open.clone())),
        }
    }
}

/// Serves until `shutdown`, and then until the requests under way are answered and what connections were given away for
/// has ended.
pub async fn serve(
    listener: TcpListener,
    routes: Arc<Surrounded>,
    connections: Places,
    deadlines: Deadlines,
    shutdown: CancellationToken,
) {
    let mut open = JoinSet::new();
    let idle = IdleConnections::default();
    // Nothing is sent: that it is closed says that nothing is held any more.
    let (held, mut let_go) = mpsc::channel(1);
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        // What has ended is only cleared away.
        while open.try_join_next().is_some() {}
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                after_refused_accept(&error).await;
                continue;
            }
        };
        make_room(&connections, &idle).await;
        let Ok(place) = connections.of_peer(address.ip()) else {
            // Dropped, and so closed: an answer would need what is missing.
            continue;
        };
        let watched = idle.open();
        let requests = Requests {
            routes: Arc::clone(&routes),
            note: watched.note(),
            peer: address,
            here: stream.local_addr().map(Here).ok(),
            hold: Hold::new(place, &held),
            write_deadline: deadlines.write,
        };
        let connection = connection::serve(stream, requests, watched, deadlines, shutdown.clone());
        open.spawn(connection);
    }
    drop(listener);
    while open.join_next().await.is_some() {}
    drop(held);
    let _ = let_go.recv().await;
}

/// Has connections give way where places run short, and waits for them where there is no place before.
async fn make_room(connections: &Places, idle: &IdleConnections) {
    let (free, of_all) = connections.free();
    connections.given_up(idle.make_room(free, of_all));
    while connections.free().0 == 0 && idle.are_leaving() {
        tokio::task::yield_now().await;
    }
}

/// Waits where another attempt would fail at once; a connection that its client gave up is no reason to.
async fn after_refused_accept(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    ) {
        tracing::error!(%error, "a connection cannot be accepted");
        tokio::time::sleep(NO_FILES_PAUSE).await;
    }
}
