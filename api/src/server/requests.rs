//! Requests: what a connection is asked, with what the routes are to know of it.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use axum::{
    body::{Body, HttpBody},
    http::{Request, Version},
    response::Response,
};
use futures::future::{Either, ready};
use hyper::{body::Incoming, upgrade::OnUpgrade};

use super::{
    Hold, Open, http2,
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
    pub(super) open: Open,
}

impl Requests {
    /// Answers one of them.
    pub(super) fn answer(
        &self,
        mut request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
        let is_http2 = request.version() == Version::HTTP_2;
        if is_http2 {
            http2::put_in_origin_form(&mut request);
        }
        if let Some(quote) = self.routes.quote(&request, self.peer.ip()) {
            self.note.answered();
            return Either::Left(ready(Ok(quote)));
        }
        let under_way = self.note.asked();
        // Over HTTP/2 a body that nobody reads on is in no other request's way.
        let (mut request, unread) = if is_http2 {
            (request.map(Body::new), None)
        } else {
            unread_body::watch(request)
        };
        self.tell(&mut request, &under_way);
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
                let streamed = |body| StreamedBody::new(body, under_way, is_http2);
                answer = answer.map(|body| Body::new(streamed(body)));
            }
            Ok(answer)
        }))
    }

    /// Has a request say whose it is, and what its connection is held by where it may become a WebSocket.
    fn tell(&self, request: &mut Request<Body>, under_way: &UnderWay) {
        let extensions = request.extensions_mut();
        extensions.insert(Peer(self.peer));
        if let Some(here) = self.here {
            extensions.insert(here);
        }
        if extensions.get::<OnUpgrade>().is_some() {
            extensions.insert(Hold {
                _open: self.open.clone(),
                _under_way: under_way.clone(),
            });
        }
    }
}
