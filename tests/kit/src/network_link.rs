//! Network link: forwards bytes to a server, and can be cut, frozen or dead.
//!
//! It stands for the network between a service and a server, and is stricter in that it forgives nothing that TCP would: what
//! is cut is reset at once, in the middle of a message, and what is frozen stays connected and says nothing, for ever.

use std::{io, net::Ipv4Addr, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
    task::AbortHandle,
};

/// Bytes forwarded at a time.
const CHUNK: usize = 64 * 1024;

#[derive(Clone, Copy, Default)]
struct Condition {
    /// Connections of an older number are reset.
    cuts: u64,
    /// The connection of this number is reset.
    cut_one: Option<usize>,
    frozen: bool,
    refusing: bool,
}

/// A link to one server. Dropping it ends it.
pub struct NetworkLink {
    address: SocketAddr,
    condition: watch::Sender<Condition>,
    accepting: AbortHandle,
}

impl Drop for NetworkLink {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl NetworkLink {
    /// A link to the server at `target`.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn to(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let condition = watch::Sender::new(Condition::default());
        let accepting = tokio::spawn(accept(listener, target, condition.clone())).abort_handle();
        Ok(Self {
            address,
            condition,
            accepting,
        })
    }

    /// Address where it begins.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it begins, for a server of HTTP.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Resets every connection over it.
    pub fn cut(&self) {
        self.condition.send_modify(|condition| condition.cuts += 1);
    }

    /// Resets one connection, by its number from 0 on in the order in which they were opened.
    pub fn cut_one(&self, number: usize) {
        self.condition
            .send_modify(|condition| condition.cut_one = Some(number));
    }

    /// Whether bytes stand still, in both directions, while the connections stay.
    pub fn freeze(&self, frozen: bool) {
        self.condition
            .send_modify(|condition| condition.frozen = frozen);
    }

    /// Whether new connections are reset at once.
    pub fn refuse(&self, refusing: bool) {
        self.condition
            .send_modify(|condition| condition.refusing = refusing);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, condition: watch::Sender<Condition>) {
    for number in 0.. {
        let Ok((near, _)) = listener.accept().await else {
            continue;
        };
        let far = if condition.borrow().refusing {
            None
        } else {
            TcpStream::connect(target).await.ok()
        };
        match far {
            Some(far) => drop(tokio::spawn(forward(
                number,
                near,
                far,
                condition.subscribe(),
            ))),
            None => reset(&near),
        }
    }
}

async fn forward(
    number: usize,
    near: TcpStream,
    far: TcpStream,
    mut condition: watch::Receiver<Condition>,
) {
    let cuts = condition.borrow().cuts;
    // Small messages must not wait for each other: a script waits for each of them.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    // The halves reset the connection when dropped.
    reset(&near);
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let frozen = condition.clone();
    tokio::select! {
        _ = copy(near_in, far_out, frozen.clone()) => {}
        _ = copy(far_in, near_out, frozen) => {}
        _ = condition.wait_for(|condition| condition.cuts != cuts || condition.cut_one == Some(number)) => {}
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut condition: watch::Receiver<Condition>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = from.read(&mut buffer).await?;
        if condition
            .wait_for(|condition| !condition.frozen)
            .await
            .is_err()
        {
            return Ok(());
        }
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read]).await?;
    }
}

/// Ends with a reset instead of an orderly close.
fn reset(stream: &TcpStream) {
    // A connection that is gone already is as good.
    let _ = stream.set_zero_linger();
}
