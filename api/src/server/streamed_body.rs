//! Streamed body: that of an answer of which nobody knows where it ends; until it does, its request is under way.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;

use super::idle::UnderWay;

/// Most bytes of a frame of HTTP/2 that are gathered with others into one write (crate `h2`, `framed_write.rs`); a longer one
/// is written by itself, which costs more than to take it apart.
const MOST_GATHERED: usize = 1_023;

/// The body of a stream.
pub(super) struct StreamedBody {
    body: Body,
    /// What came of the body and was not given out yet.
    rest: Bytes,
    /// Most bytes that are given out at a time.
    most: usize,
    _under_way: UnderWay,
}

impl StreamedBody {
    pub(super) const fn new(body: Body, under_way: UnderWay, is_http2: bool) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            most: if is_http2 { MOST_GATHERED } else { usize::MAX },
            _under_way: under_way,
        }
    }

    /// The next of the rest.
    fn piece(&mut self) -> Frame<Bytes> {
        let length = self.rest.len().min(self.most);
        Frame::data(self.rest.split_to(length))
    }
}

impl HttpBody for StreamedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)?) else {
            return Poll::Ready(None);
        };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                self.piece()
            }
            Err(other) => other,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::BodyExt;

    use super::*;
    use crate::server::idle::IdleConnections;

    /// Lengths of the frames in which a stream of this text is given out.
    async fn lengths(text: &'static str, is_http2: bool) -> Vec<usize> {
        let connection = IdleConnections::default().open();
        let events = stream::iter([Ok::<_, axum::Error>(Bytes::from_static(text.as_bytes()))]);
        let under_way = connection.note().asked();
        let mut body = StreamedBody::new(Body::from_stream(events), under_way, is_http2);
        let mut lengths = Vec::new();
        let mut given = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.expect("a frame").into_data().expect("data");
            lengths.push(data.len());
            given.extend(data);
        }
        assert_eq!(given, text.as_bytes());
        lengths
    }

    #[tokio::test]
    async fn what_is_longer_than_is_gathered_comes_in_pieces_over_http2_alone() {
        const LONG: &str = match str::from_utf8(&[b'a'; 2 * MOST_GATHERED + 1]) {
            Ok(text) => text,
            Err(_) => panic!("it is ASCII"),
        };
        assert_eq!(lengths(LONG, true).await, [MOST_GATHERED, MOST_GATHERED, 1]);
        assert_eq!(lengths(LONG, false).await, [LONG.len()]);
        let (short, _) = LONG.split_at(MOST_GATHERED);
        assert_eq!(lengths(short, true).await, [MOST_GATHERED]);
    }
}
