//! Stream of HTTP/2 of which the head is answered: its side that sends, which several may share, and both as one that reads and writes.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::server::{idle::UnderWay, patience::Patience};

/// Most bytes of a frame that are gathered with others into one write (crate `h2`, `framed_write.rs`); a longer one is written by
/// itself, which costs more than to take it apart.
const MOST_GATHERED: usize = 1_023;

/// Both sides of a stream.
pub struct OpenStream {
    sending: Sending,
    /// Of a request that may send on.
    receiving: Option<RecvStream>,
}

/// Takes a stream over once its head is sent: an extension of the answer.
#[derive(Clone)]
pub struct TakenOver(Arc<Mutex<Option<TakeOver>>>);

type TakeOver = Box<dyn FnOnce(OpenStream) + Send>;

/// The side that sends, until all who share it are dropped. Clones are the same.
#[derive(Clone)]
pub struct Sender(Arc<Mutex<Sending>>);

/// The same for one who has its turn.
pub struct Sending {
    stream: SendStream<Bytes>,
    /// How long it may wait for its client to take something in.
    patience: Patience,
    /// Who is woken as well when another has sent something.
    waits_too: Option<Waker>,
    _under_way: UnderWay,
}

/// The client has given the stream up, or its connection is lost.
#[derive(Debug)]
pub struct Gone;

/// Both sides as what reads and writes bytes.
pub struct Duplex {
    sender: Sender,
    receiving: RecvStream,
    /// What has come and was not read yet.
    rest: Bytes,
}

impl TakenOver {
    /// By this function.
    pub fn by(take_over: impl FnOnce(OpenStream) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(take_over)))))
    }

    /// Gives the stream out, which is done once.
    pub(super) fn give(&self, stream: OpenStream) {
        let take_over = self.0.lock().take();
        if let Some(take_over) = take_over {
            take_over(stream);
        }
    }
}

impl OpenStream {
    pub(super) const fn new(sending: Sending, receiving: Option<RecvStream>) -> Self {
        Self { sending, receiving }
    }

    /// The side that sends.
    pub fn sender(self) -> Sender {
        Sender(Arc::new(Mutex::new(self.sending)))
    }

    /// Both sides, where the client may send on, and once more the one that sends.
    pub fn duplex(mut self) -> Option<(Duplex, Sender)> {
        let receiving = self.receiving.take()?;
        let sender = self.sender();
        let duplex = Duplex {
            sender: sender.clone(),
            receiving,
            rest: Bytes::new(),
        };
        Some((duplex, sender))
    }
}

impl Sender {
    /// Waits for the turn.
    pub fn turn(&self) -> MutexGuard<'_, Sending> {
        self.0.lock()
    }
}

impl Sending {
    /// Each time that something is to be sent it waits no longer than `deadline` for the client to have room.
    pub(super) const fn new(
        stream: SendStream<Bytes>,
        deadline: Duration,
        under_way: UnderWay,
    ) -> Self {
        Self {
            stream,
            patience: Patience::new(deadline),
            waits_too: None,
            _under_way: under_way,
        }
    }

    /// Whether the client is gone; who asks is woken when it is.
    pub fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_reset(context).map(|_| ())
    }

    /// Whether something may be sent: the client takes in what was sent before. Who asks is woken when it may.
    ///
    /// # Errors
    /// When nothing can be sent any more: the client is gone, or has taken nothing in for too long.
    pub fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let room = poll_capacity(&mut self.stream, context);
        let Some(room) = ready!(self.patience.poll(room, context)) else {
            self.stream.send_reset(Reason::CANCEL);
            return Poll::Ready(Err(Gone));
        };
        Poll::Ready(room)
    }

    /// Has who asks woken also when another who shares the side has sent something: the stream itself wakes only the one of
    /// them who asked last.
    pub fn wake_too(&mut self, context: &Context<'_>) {
        self.waits_too = Some(context.waker().clone());
    }

    fn wake_other(&mut self) {
        if let Some(other) = self.waits_too.take() {
            other.wake();
        }
    }

    /// Sends bytes, of which what the client has no room for waits.
    ///
    /// # Errors
    /// When nothing can be sent any more.
    pub fn send(&mut self, mut bytes: Bytes) -> Result<(), Gone> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(MOST_GATHERED));
            self.stream.send_data(piece, false).map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// Ends the side.
    pub fn end(&mut self) {
        // Where the client is gone it has ended.
        let _ = self.stream.send_data(Bytes::new(), true);
    }

    pub(super) async fn until_gone(&mut self) {
        poll_fn(|context| self.poll_gone(context)).await;
    }

    pub(super) async fn until_room(&mut self) -> Result<(), Gone> {
        poll_fn(|context| self.poll_room(context)).await
    }
}

/// Waits until the client has room for some bytes.
fn poll_capacity(
    stream: &mut SendStream<Bytes>,
    context: &mut Context<'_>,
) -> Poll<Result<(), Gone>> {
    // More is asked for by what is sent then; what is asked for before is kept from the other streams of the connection.
    stream.reserve_capacity(1);
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(context)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(Err(Gone)),
        }
    }
    Poll::Ready(Ok(()))
}

impl AsyncRead for Duplex {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(self.receiving.poll_data(context)) {
                Some(Ok(data)) => self.rest = data,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest.split_to(length));
        // Where the stream is broken, the next read says so.
        let _ = self.receiving.flow_control().release_capacity(length);
        Poll::Ready(Ok(()))
    }
}

/// All of a write is taken, or nothing: what others who share the side send stands between two writes.
impl AsyncWrite for Duplex {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut sending = self.sender.turn();
        let room = ready!(sending.poll_room(context));
        sending.wake_other();
        let sent = room.and_then(|()| sending.send(Bytes::copy_from_slice(bytes)));
        Poll::Ready(match sent {
            Ok(()) => Ok(bytes.len()),
            Err(Gone) => Err(io::ErrorKind::BrokenPipe.into()),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut sending = self.sender.turn();
        sending.end();
        sending.wake_other();
        Poll::Ready(Ok(()))
    }
}
