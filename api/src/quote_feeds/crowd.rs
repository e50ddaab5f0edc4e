//! Crowd: the readers of one feed over one connection of HTTP/2, which are all given what it shows by one task.
//!
//! To wake a task for each of ten thousand readers, and the tasks of a protocol beside it, takes longer than to write what they
//! are sent; and of those that share a connection, the writes are gathered where they are made one after the other.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{
    futures::OwnedNotified,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

use super::{
    Reader,
    board::{Board, Onlooker},
    shown::{Event, Seen, Shown},
};
use crate::{
    places::Place,
    server::http2::{Gone, Sender, Sending},
    sockets::{SocketEvent, SocketEvents},
    stream_end::StreamEnd,
};

/// The crowds of one connection. Clones are the same.
#[derive(Clone, Default)]
pub struct Crowds(Arc<Mutex<Vec<Entrance>>>);

/// Where to join one of them.
struct Entrance {
    board: Board,
    joining: UnboundedSender<Member>,
}

/// The task of one.
struct Crowd {
    onlooker: Onlooker,
    changed: Pin<Box<OwnedNotified>>,
    joining: UnboundedReceiver<Member>,
    members: Vec<Member>,
    of: Crowds,
}

/// One reader.
struct Member {
    sender: Sender,
    seen: Seen,
    form: Form,
}

/// In which form it is sent what the feed shows, and what that has to do with its end.
enum Form {
    /// Server-sent events, by nobody else: its place is given back when they end.
    Events { _place: Place },
    /// Messages of a WebSocket, whose session is told the end, and closes the channel when nothing may follow.
    Messages(Option<oneshot::Sender<StreamEnd>>),
}

/// What the session of a socket has to send besides the quotes that its crowd sends: the end.
pub struct UntilEnd {
    end: Option<oneshot::Receiver<StreamEnd>>,
    _place: Place,
}

impl Crowds {
    /// Has a reader given what its feed shows as server-sent events.
    pub fn send_events(&self, reader: Reader, sender: Sender, place: Place) {
        self.join(reader, sender, Form::Events { _place: place });
    }

    /// Has one given it as messages of a WebSocket; what is left for the socket's session to send.
    #[must_use]
    pub fn send_messages(&self, reader: Reader, sender: Sender, place: Place) -> UntilEnd {
        let (told, end) = oneshot::channel();
        self.join(reader, sender, Form::Messages(Some(told)));
        UntilEnd {
            end: Some(end),
            _place: place,
        }
    }

    fn join(&self, reader: Reader, sender: Sender, form: Form) {
        let (onlooker, seen) = reader.into_parts();
        let member = Member { sender, seen, form };
        let mut open = self.0.lock();
        // One that a panic has ended is begun again.
        open.retain(|known| !known.joining.is_closed());
        let board = onlooker.board();
        let known = open.iter().find(|known| known.board.is(&board));
        if let Some(known) = known {
            // Its task ends under the lock alone.
            let _ = known.joining.send(member);
            return;
        }
        let (joining, joined) = unbounded_channel();
        let crowd = Crowd {
            changed: Box::pin(onlooker.changed_owned()),
            onlooker,
            joining: joined,
            members: vec![member],
            of: self.clone(),
        };
        open.push(Entrance { board, joining });
        tokio::spawn(crowd);
    }
}

impl Future for Crowd {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let crowd = self.get_mut();
        while let Poll::Ready(Some(member)) = crowd.joining.poll_recv(context) {
            crowd.members.push(member);
        }
        // Both before it is looked, so that nothing after it is missed.
        while crowd.changed.as_mut().poll(context).is_ready() {
            crowd.changed.set(crowd.onlooker.changed_owned());
        }
        let is_left = crowd.onlooker.is_left();
        // A copy, so that the crowds of other connections need not wait.
        let shown = crowd.onlooker.shown().clone();
        crowd
            .members
            .retain_mut(|member| member.poll_stays(&shown, is_left, context));
        if crowd.members.is_empty() && crowd.closes() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Crowd {
    /// Takes the entrance away, unless somebody has joined who is not looked after yet.
    fn closes(&self) -> bool {
        let mut open = self.of.0.lock();
        let is_empty = self.joining.is_empty();
        if is_empty {
            let board = self.onlooker.board();
            open.retain(|other| !other.board.is(&board));
        }
        is_empty
    }
}

impl Member {
    /// Sends what it was not given yet, as far as there is room for that; whether something may follow.
    fn poll_stays(&mut self, shown: &Shown, is_left: bool, context: &mut Context<'_>) -> bool {
        let mut sending = self.sender.turn();
        if sending.poll_gone(context).is_ready() || self.form.is_closed() {
            return false;
        }
        if self.form.is_shared() {
            sending.wake_too(context);
        }
        loop {
            let mut seen = self.seen;
            let Some(event) = shown.unseen(&mut seen) else {
                if is_left {
                    // It went without a word.
                    self.form.end(None, &mut sending);
                }
                return !is_left;
            };
            let sent = match sending.poll_room(context) {
                Poll::Pending => return true,
                Poll::Ready(Err(gone)) => Err(gone),
                Poll::Ready(Ok(())) => match self.form.bytes(event) {
                    Ok(bytes) => sending.send(bytes),
                    Err(end) => {
                        self.form.end(Some(end), &mut sending);
                        return false;
                    }
                },
            };
            if let Err(Gone) = sent {
                return false;
            }
            self.seen = seen;
        }
    }
}

impl Form {
    /// Whether somebody else sends as well.
    const fn is_shared(&self) -> bool {
        matches!(self, Self::Messages(_))
    }

    /// Whether nothing may be sent any more.
    fn is_closed(&self) -> bool {
        match self {
            Self::Events { .. } => false,
            Self::Messages(told) => told.as_ref().is_none_or(oneshot::Sender::is_closed),
        }
    }

    /// An event as it is sent, unless it is the end.
    fn bytes(&self, event: Event) -> Result<Bytes, StreamEnd> {
        match (event, self) {
            (Event::End(end), _) => Err(end),
            (event, Self::Events { .. }) => Ok(event.into_sse()),
            (event, Self::Messages(_)) => Ok(event.into_frame()),
        }
    }

    /// Nothing follows, for this reason.
    fn end(&mut self, reason: Option<StreamEnd>, sending: &mut Sending) {
        match self {
            Self::Events { .. } => {
                // Who is gone need not be told.
                let _ = reason.map(|reason| sending.send(reason.sse()));
                sending.end();
            }
            Self::Messages(told) => {
                // Without a word where there is no reason, and where the session has ended meanwhile.
                let _ = told.take().zip(reason).map(|(told, end)| told.send(end));
            }
        }
    }
}

impl SocketEvents for UntilEnd {
    async fn next(&mut self) -> Option<SocketEvent> {
        let end = self.end.as_mut()?.await;
        self.end = None;
        Some(SocketEvent::End(end.ok()?))
    }

    fn stop(&mut self) {
        // Under a member's turn it is looked whether this is so, and what is said to part has to wait for that turn.
        self.end = None;
    }
}
