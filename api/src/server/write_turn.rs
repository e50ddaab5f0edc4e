//! Write turn: has what is written wait until the tasks that are due have run, so that what they send goes with it.
//!
//! One event is for thousands of streams, a hundred of which share a connection over HTTP/2. The first of them that has it wakes
//! the connection, which would write that one by itself, and the next by itself again: each write of a few hundred bytes costs
//! the kernel as much as one of all of them.

use std::{
    io, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes after which a flush does not end the turn: as many were there at once, and more follow.
const MORE_FOLLOWS: usize = 8 * 1024;

/// A connection of which the first write after a flush waits for its turn.
pub(super) struct WriteTurn<T> {
    inner: T,
    is_its_turn: bool,
    /// Bytes since the last flush.
    written: usize,
}

impl<T> WriteTurn<T> {
    pub(super) const fn new(inner: T) -> Self {
        Self {
            inner,
            is_its_turn: false,
            written: 0,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTurn<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

/// No vectored writes: without them frames are gathered that are four times as long (crate `h2`, `framed_write.rs`).
impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTurn<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.is_its_turn {
            self.is_its_turn = true;
            // A task that wakes itself is put behind the others.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let written = ready!(Pin::new(&mut self.inner).poll_write(context, bytes))?;
        self.written = self.written.saturating_add(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_its_turn = mem::take(&mut self.written) >= MORE_FOLLOWS;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        task::{LocalSet, spawn_local},
    };

    use super::*;

    #[tokio::test]
    async fn a_write_comes_after_the_tasks_that_were_due_before_it() {
        let events = Rc::new(RefCell::new(Vec::new()));
        let (near, mut far) = duplex(64);
        let of_writer = Rc::clone(&events);
        let of_other = Rc::clone(&events);
        let written = LocalSet::new();
        written.spawn_local(async move {
            let other = spawn_local(async move { of_other.borrow_mut().push("other") });
            let mut near = WriteTurn::new(near);
            for _ in 0..2 {
                near.write_all(b"a").await.expect("room");
                near.flush().await.expect("room");
                of_writer.borrow_mut().push("written");
            }
            other.await.expect("it ends");
        });
        written.await;
        assert_eq!(*events.borrow(), ["other", "written", "written"]);
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).await.expect("an end");
        assert_eq!(bytes, b"aa");
    }
}
