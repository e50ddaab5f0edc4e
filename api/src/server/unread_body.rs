//! Unread body: takes in what an answer left of its request's body, so that the connection is fit for the next request.
//!
//! A request may be refused by its head alone. What the client still sends of its body then lies before its next request on
//! the connection; a server that closes it there without a word has that one fail, which did nothing wrong.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    http::{HeaderMap, HeaderValue, Request, header},
};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::time::timeout;

/// Most bytes that are taken in: more than any body that is not far from its limit.
const MOST: usize = 256 * 1024;

/// How long that may take. The answer waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// A body that hands over what is left of it when it is dropped.
struct Watched {
    body: Option<Incoming>,
    left: Left,
}

type Left = Arc<Mutex<Option<Incoming>>>;

/// Where what is left of a body is found once nobody reads it any more.
pub(super) struct UnreadBody {
    left: Left,
    /// The client sends nothing of it before it is asked to, and is not.
    is_awaited: bool,
}

/// The request with its body watched; only where it has one.
pub(super) fn watch(request: Request<Incoming>) -> (Request<Body>, Option<UnreadBody>) {
    if request.body().is_end_stream() {
        return (request.map(Body::new), None);
    }
    let left = Left::default();
    let unread = UnreadBody {
        left: Arc::clone(&left),
        is_awaited: request.headers().contains_key(header::EXPECT),
    };
    let watched = |body| {
        Body::new(Watched {
            body: Some(body),
            left,
        })
    };
    (request.map(watched), Some(unread))
}

impl UnreadBody {
    /// Takes in what is left of the body, or says in the answer that the connection ends with it.
    pub(super) async fn take_in(self, answer: &mut HeaderMap) {
        let Some(left) = self.left.lock().take() else {
            return;
        };
        let is_gone = !self.is_awaited && matches!(timeout(PATIENCE, rest(left)).await, Ok(true));
        if !is_gone {
            answer.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Whether a body ended within [`MOST`] bytes.
async fn rest(body: Incoming) -> bool {
    let mut body = Limited::new(body, MOST);
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            // It ended, or cannot be read on.
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or(SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.is_end_stream() {
            *self.left.lock() = self.body.take();
        }
    }
}
