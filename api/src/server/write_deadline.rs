//! Write deadline: ends a connection whose client does not take in what it is sent.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::patience::Patience;

/// A connection of which a write that takes no byte for too long fails.
pub struct WriteDeadline<T> {
    inner: T,
    patience: Patience,
    takes_slices: bool,
}

impl<T> WriteDeadline<T> {
    /// Gives each write of `inner` this long.
    pub const fn new(inner: T, deadline: Duration) -> Self {
        Self {
            inner,
            patience: Patience::new(deadline),
            takes_slices: true,
        }
    }

    /// Has what is written gathered by who writes it, whole, and not left to the kernel in slices.
    #[must_use]
    pub const fn without_slices(mut self) -> Self {
        self.takes_slices = false;
        self
    }

    /// What the write comes to: itself, or an error when it has waited for too long.
    fn bounded<R>(
        &mut self,
        written: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        let bounded = self.patience.poll(written, context);
        bounded.map(|written| written.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into())))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteDeadline<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.bounded(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.bounded(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.takes_slices && self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.bounded(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.inner).poll_shutdown(context);
        self.bounded(closed, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(3);

    /// Between two reads of a slow reader: so much less than the deadline that a busy machine does not close the gap.
    const PAUSE: Duration = Duration::from_millis(500);

    /// So many that all of them take longer than the deadline.
    const READS: usize = 8;

    const CHUNK: usize = 8;

    #[tokio::test]
    async fn a_write_that_nobody_takes_fails_and_one_that_is_taken_slowly_does_not() {
        let (near, mut far) = duplex(CHUNK);
        let mut near = WriteDeadline::new(near, DEADLINE);
        let slow_reader = async {
            for _ in 0..READS {
                tokio::time::sleep(PAUSE).await;
                let mut bytes = [0; CHUNK];
                far.read_exact(&mut bytes).await.expect("bytes");
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[1; CHUNK * (READS + 1)]), slow_reader);
        assert!(written.is_ok(), "{written:?}");
        let stuck = near.write_all(&[1; 2 * CHUNK]).await;
        let kind = stuck.expect_err("nobody reads").kind();
        assert_eq!(kind, io::ErrorKind::TimedOut);
    }
}
