//! One subscription of a client under test, as the script that plays the server holds it.

use tokio::sync::mpsc::{self, error::TrySendError};
use tonic::{Code, Status};
use yellowstone_grpc_proto::geyser::{self as proto, subscribe_update::UpdateOneof};

use super::encode;
use crate::{request::Request, update::Update};

/// One subscription of a client. Dropping it ends the stream without an error.
#[derive(Debug)]
pub struct Connection {
    pub(super) requests: mpsc::UnboundedReceiver<Received>,
    pub(super) messages: mpsc::Sender<Result<proto::SubscribeUpdate, Status>>,
}

/// A message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The subscription it carries.
    pub request: Request,
    /// Its ping id, when it is a ping.
    pub ping: Option<i32>,
}

/// The client has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has closed the stream")]
pub struct ClientGone;

/// Why an update was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsent {
    /// As many updates wait for the client as may.
    #[error("the client's queue is full")]
    QueueFull,
    /// There is no client any more.
    #[error(transparent)]
    ClientGone(#[from] ClientGone),
}

impl Connection {
    /// The client's next message; `None` once the client has closed its half.
    pub async fn received(&mut self) -> Option<Received> {
        self.requests.recv().await
    }

    /// Sends an update as it is. Waits while the client does not read.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub async fn send(&self, update: Update) -> Result<(), ClientGone> {
        self.put(Ok(encode::update(update))).await
    }

    /// Sends an update unless the client has fallen behind by a whole queue.
    ///
    /// # Errors
    /// [`Unsent`].
    pub fn try_send(&self, update: Update) -> Result<(), Unsent> {
        let sent = self.messages.try_send(Ok(encode::update(update)));
        sent.map_err(|error| match error {
            TrySendError::Full(_) => Unsent::QueueFull,
            TrySendError::Closed(_) => ClientGone.into(),
        })
    }

    /// Sends a ping.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub async fn ping(&self) -> Result<(), ClientGone> {
        self.put(Ok(proto::SubscribeUpdate {
            update_oneof: Some(UpdateOneof::Ping(proto::SubscribeUpdatePing {})),
            ..proto::SubscribeUpdate::default()
        }))
        .await
    }

    /// Sends a message without content, which the protocol forbids.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub async fn send_garbage(&self) -> Result<(), ClientGone> {
        self.put(Ok(proto::SubscribeUpdate::default())).await
    }

    /// Ends the stream with an error, after everything sent before.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub async fn fail(self, code: Code, message: &str) -> Result<(), ClientGone> {
        self.put(Err(Status::new(code, message))).await
    }

    async fn put(&self, message: Result<proto::SubscribeUpdate, Status>) -> Result<(), ClientGone> {
        self.messages.send(message).await.map_err(|_| ClientGone)
    }
}
