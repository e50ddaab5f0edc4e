//! Streamed body: that of an answer of which nobody knows where it ends; until it does, its request is under way.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;

use super::idle::UnderWay;

/// The body of a stream.
pub(super) struct StreamedBody {
    body: Body,
    _under_way: UnderWay,
}

impl StreamedBody {
    pub(super) const fn new(body: Body, under_way: UnderWay) -> Self {
        Self {
            body,
            _under_way: under_way,
        }
    }
}

impl HttpBody for StreamedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
