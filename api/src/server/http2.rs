//! HTTP/2 (RFC 9113) without TLS, as a proxy speaks it that has ended the TLS of its clients: many requests and streams over one
//! connection.

mod connection;
mod exchange;
mod origin_form;
mod request_body;
mod scope;
mod stream;

pub(super) use self::connection::serve;
pub use self::{
    scope::ConnectionScope,
    stream::{Gone, Sender, Sending, TakenOver},
};
