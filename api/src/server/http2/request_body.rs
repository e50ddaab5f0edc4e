//! Body of a request over HTTP/2: who reads it lets its client send on.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::body::{Bytes, HttpBody};
use h2::RecvStream;
use hyper::body::{Frame, SizeHint};

/// The body.
pub(super) struct RequestBody(pub(super) RecvStream);

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        // Trailers are asked for by no route.
        let data = ready!(self.0.poll_data(context));
        Poll::Ready(data.map(|data| {
            let data = data?;
            self.0.flow_control().release_capacity(data.len())?;
            Ok(Frame::data(data))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_end_stream() {
            SizeHint::with_exact(0)
        } else {
            SizeHint::default()
        }
    }
}
