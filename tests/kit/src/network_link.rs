//! Network link: forwards bytes to a server, and can be cut, frozen, stranded, dead, or lead elsewhere.
//!
//! It stands for the network between a service and a server, and is stricter in that it forgives nothing that TCP would: what
//! is cut is reset at once, in the middle of a message, and what is frozen stays connected and says nothing, for ever.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
    task::AbortHandle,
};

/// Bytes forwarded at a time.
const CHUNK: usize = 64 * 1024;

#[derive(Clone, Copy)]
struct Condition {
    /// Where new connections lead.
    target: SocketAddr,
    /// Connections of an older number are reset.
    cuts: u64,
    /// Connections of an older number stand still for ever.
    strandings: u64,
    /// The connection of this number is reset.
    cut_one: Option<usize>,
    frozen: bool,
    refusing: bool,
}

/// A link to one server. Dropping it ends it.
pub struct NetworkLink {
    address: SocketAddr,
    condition: watch::Sender<Condition>,
    opened: Arc<AtomicU64>,
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
        let condition = watch::Sender::new(Condition {
            target,
            cuts: 0,
            strandings: 0,
            cut_one: None,
            frozen: false,
            refusing: false,
        });
        let opened = Arc::new(AtomicU64::new(0));
        let accepting = accept(listener, condition.clone(), Arc::clone(&opened));
        let accepting = tokio::spawn(accepting).abort_handle();
        Ok(Self {
            address,
            condition,
            opened,
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

    /// How many connections over it have reached a server.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
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

    /// Lets every connection over it stand still for ever, as when the host at one of its ends loses power: neither end is told,
    /// even if the process there dies. New connections are as good as ever.
    pub fn strand(&self) {
        self.condition
            .send_modify(|condition| condition.strandings += 1);
    }

    /// Leads new connections to another server.
    pub fn redirect(&self, target: SocketAddr) {
        self.condition
            .send_modify(|condition| condition.target = target);
    }

    /// Whether new connections are reset at once.
    pub fn refuse(&self, refusing: bool) {
        self.condition
            .send_modify(|condition| condition.refusing = refusing);
    }
}

async fn accept(
    listener: TcpListener,
    condition: watch::Sender<Condition>,
    opened: Arc<AtomicU64>,
) {
    for number in 0.. {
        let Ok((near, _)) = listener.accept().await else {
            continue;
        };
        let Condition {
            target, refusing, ..
        } = *condition.borrow();
        let far = if refusing {
            None
        } else {
            TcpStream::connect(target).await.ok()
        };
        match far {
            Some(far) => {
                opened.fetch_add(1, Ordering::Relaxed);
                let forwarding = forward(number, near, far, condition.subscribe());
                drop(tokio::spawn(forwarding));
            }
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
    let strandings = condition.borrow().strandings;
    loop {
        let read = from.read(&mut buffer).await?;
        if condition
            .wait_for(|condition| !condition.frozen && condition.strandings == strandings)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers the first byte of every connection with its own name.
    async fn server(name: u8) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("is bound");
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    while client.read_u8().await.is_ok() && client.write_u8(name).await.is_ok() {}
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn stranded_connections_stand_still_while_new_ones_reach_the_new_target() {
        let link = NetworkLink::to(server(1).await).await.expect("a link");
        let mut old = TcpStream::connect(link.address()).await.expect("connects");
        old.write_u8(0).await.expect("is open");
        assert_eq!(old.read_u8().await.expect("answers"), 1);

        link.strand();
        link.redirect(server(2).await);
        let asked = old.write_u8(0).await;
        asked.expect("nobody was told");
        let mut new = TcpStream::connect(link.address()).await.expect("connects");
        new.write_u8(0).await.expect("is open");
        assert_eq!(new.read_u8().await.expect("answers"), 2);
        let mut answer = [0];
        let silent = old.try_read(&mut answer).expect_err("never answers");
        assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(link.opened(), 2);
    }
}
