//! Connection: HTTP/1.1 on one byte stream, driven by the task that uses it.
//!
//! The HTTP library leaves it to its user who runs the protocol beside a request. A task of its own for each connection costs
//! two wake-ups across threads for every request; here whoever waits for an answer reads and writes meanwhile, and between two
//! requests nobody does.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Frame, Incoming},
    client::conn::{TrySendError, http1},
    rt::{Read, Write},
};

/// A request as it is sent.
pub(crate) type Outgoing = Request<Full<Bytes>>;

/// An open connection.
pub(crate) struct Connection {
    requests: http1::SendRequest<Full<Bytes>>,
    protocol: Protocol,
}

/// What reads and writes; nothing once the connection is closed.
struct Protocol(Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>);

impl Protocol {
    fn poll(&mut self, context: &mut Context<'_>) {
        if let Some(running) = &mut self.0
            && running.as_mut().poll(context).is_ready()
        {
            // Dropped, so that who waits for an answer hears that none will come.
            self.0 = None;
        }
    }

    /// Runs beside `step` until that is done.
    async fn beside<F: Future>(&mut self, step: F) -> F::Output {
        let mut step = pin!(step);
        poll_fn(|context| {
            if let Poll::Ready(done) = step.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            self.poll(context);
            step.as_mut().poll(context)
        })
        .await
    }
}

impl Connection {
    /// HTTP over a byte stream.
    ///
    /// # Errors
    /// None while nothing is sent.
    pub(crate) async fn over<T>(stream: T) -> hyper::Result<Self>
    where
        T: Read + Write + Send + Unpin + 'static,
    {
        let (requests, protocol) = http1::handshake(stream).await?;
        Ok(Self {
            requests,
            protocol: Protocol(Some(Box::pin(protocol))),
        })
    }

    /// Whether another request may be sent: the answer before it was read to its end, and neither side has closed, as far as
    /// is known here.
    pub(crate) fn is_open(&mut self) -> bool {
        self.protocol.poll(&mut Context::from_waker(Waker::noop()));
        self.requests.is_ready()
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// What broke, with the request where nothing of it was sent.
    pub(crate) async fn send(
        &mut self,
        request: Outgoing,
    ) -> Result<Response<Incoming>, TrySendError<Outgoing>> {
        let answer = self.requests.try_send_request(request);
        self.protocol.beside(answer).await
    }

    /// The next piece of an answer's body; `None` at its end.
    pub(crate) async fn piece(
        &mut self,
        body: &mut Incoming,
    ) -> Option<hyper::Result<Frame<Bytes>>> {
        self.protocol.beside(body.frame()).await
    }
}
