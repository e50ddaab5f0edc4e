//! Requests: what a connection is asked, with what the routes are to know of it.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody},
    http::Request,
    response::Response,
};
use futures::future::{Either, ready};
use hyper::{body::Incoming, upgrade::OnUpgrade};

use super::{
    Hold,
    idle::{Note, UnderWay},
    streamed_body::StreamedBody,
    unread_body,
};
use crate::{
    client::{Here, Peer},
    middleware::Surrounded,
};

/// The requests of one connection.
pub(super) struct Requests {
    pub(super) routes: Arc<Surrounded>,
    pub(super) note: Note,
    pub(super) peer: SocketAddr,
    pub(super) here: Option<Here>,
    pub(super) hold: Hold,
    /// How long an answer over HTTP/2 waits for its client to take some bytes of it in.
    pub(super) write_deadline: Duration,
}

impl Requests {
    /// Answers one of them, which came over HTTP/1.1.
    pub(super) fn answer_over_http1(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
        if let Some(quote) = self.routes.quote(&request, self.peer.ip()) {
            self.note.answered();
            return Either::Left(ready(Ok(quote)));
        }
        let under_way = self.note.asked();
        let (mut request, unread) = unread_body::watch(request);
        self.tell(&mut request);
        let extensions = request.extensions_mut();
        if extensions.get::<OnUpgrade>().is_some() {
            extensions.insert(self.hold.clone());
        }
        let routes = Arc::clone(&self.routes);
        // On the heap: what is given out is moved on its way to the connection, and that keeps the room of the longest of
        // all routes for as long as its stream lasts.
        Either::Right(Box::pin(async move {
            let mut answer = routes.answer(request).await;
            if let Some(unread) = unread {
                unread.take_in(answer.headers_mut()).await;
            }
            // Of a stream nobody knows where it ends.
            if answer.body().size_hint().exact().is_none() {
                answer = answer.map(|body| Body::new(StreamedBody::new(body, under_way)));
            }
            Ok(answer)
        }))
    }

    /// Answers one of them, which came over HTTP/2 and is under way until what is given out beside the answer is dropped. `scope` is an
    /// extension of it: what it shares with the others of its connection.
    pub(super) fn answer_over_http2<S: Clone + Send + Sync + 'static>(
        &self,
        mut request: Request<Body>,
        scope: &S,
    ) -> (impl Future<Output = Response> + Send + use<S>, UnderWay) {
        let under_way = self.note.asked();
        if let Some(quote) = self.routes.quote(&request, self.peer.ip()) {
            return (Either::Left(ready(quote)), under_way);
        }
        self.tell(&mut request);
        request.extensions_mut().insert(scope.clone());
        let routes = Arc::clone(&self.routes);
        let answer = Box::pin(async move { routes.answer(request).await });
        (Either::Right(answer), under_way)
    }

    /// Has a request say whose it is.
    fn tell(&self, request: &mut Request<Body>) {
        let extensions = request.extensions_mut();
        extensions.insert(Peer(self.peer));
        if let Some(here) = self.here {
            extensions.insert(here);
        }
    }
}
