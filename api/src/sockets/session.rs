//! Session of a socket: sends events until they end or the reader goes, and parts in order.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        error::ProtocolError,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{SocketEvent, SocketEvents};
use crate::{error::ApiError, stream_end::StreamEnd};

/// The longest message that is read to its end. None is awaited; one that is longer is not even read.
const MOST_MESSAGE_BYTES: usize = 1024;

/// Room for what is read at once: pongs, and now and then a message that is refused.
const READ_BUFFER_BYTES: usize = 256;

/// Most bytes of answers to pings, and of the event on its way, that wait for a reader who takes nothing in; a hundred times
/// a quote.
const MOST_WAITING_BYTES: usize = 128 * 1024;

/// How long the other side may take to close the connection once it was said goodbye to: a reader far away answers in a
/// fraction of it, and the end of the service waits no longer for one that is gone.
const FAREWELL: Duration = Duration::from_secs(2);

/// How a session comes to its end.
enum Ending {
    /// The events end, or are ended by a fault of the reader, for a reason that it is told.
    With(StreamEnd),
    /// All was said.
    Complete,
    /// What the reader sends is no WebSocket's.
    Garbled(CloseCode),
    /// The reader says goodbye.
    Goodbye,
    /// The connection is lost.
    Lost,
}

/// Sends the events down a connection that has just become a WebSocket, until either side ends it.
pub(super) async fn run<C>(connection: C, mut events: impl SocketEvents)
where
    C: AsyncRead + AsyncWrite + Unpin + Send,
{
    let settings = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(MOST_WAITING_BYTES)
        .max_message_size(Some(MOST_MESSAGE_BYTES))
        .max_frame_size(Some(MOST_MESSAGE_BYTES));
    let mut socket =
        WebSocketStream::from_raw_socket(connection, Role::Server, Some(settings)).await;
    let ending = converse(&mut socket, &mut events).await;
    events.stop();
    if part(&mut socket, ending).await.is_ok() {
        linger(socket.into_inner()).await;
    }
}

/// Sends event after event, and reads what the reader sends meanwhile.
async fn converse<C>(socket: &mut WebSocketStream<C>, events: &mut impl SocketEvents) -> Ending
where
    C: AsyncRead + AsyncWrite + Unpin + Send,
{
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            ending = fault(socket) => return ending,
        };
        let message = match event {
            None => return Ending::Complete,
            Some(SocketEvent::End(end)) => return Ending::With(end),
            Some(SocketEvent::Message(text)) => Message::Text(text),
            Some(SocketEvent::Beat(text)) => Message::Ping(text.into()),
        };
        // To its end, whatever comes in meanwhile: the connection's own deadline counts from where a write began to wait.
        if socket.send(message).await.is_err() {
            return Ending::Lost;
        }
    }
}

/// Reads, and answers pings, until something comes that ends the session.
async fn fault<C>(socket: &mut WebSocketStream<C>) -> Ending
where
    C: AsyncRead + AsyncWrite + Unpin + Send,
{
    loop {
        let reason = match socket.next().await {
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Close(_))) => return Ending::Goodbye,
            Some(Ok(Message::Text(_) | Message::Binary(_))) => ApiError::UnexpectedMessage,
            Some(Err(Error::Capacity(_))) => ApiError::MessageTooLarge {
                limit: MOST_MESSAGE_BYTES,
            },
            Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) | None => {
                return Ending::Lost;
            }
            Some(Err(Error::Protocol(_))) => return Ending::Garbled(CloseCode::Protocol),
            Some(Err(Error::Utf8(_))) => return Ending::Garbled(CloseCode::Invalid),
            Some(Err(_)) => return Ending::Lost,
        };
        return Ending::With(StreamEnd::from(&reason));
    }
}

/// Says why it is over; an error where nobody is there to be told.
async fn part<C>(socket: &mut WebSocketStream<C>, ending: Ending) -> Result<(), Error>
where
    C: AsyncRead + AsyncWrite + Unpin + Send,
{
    let close = |code| CloseFrame {
        code,
        reason: Utf8Bytes::default(),
    };
    let close = match ending {
        Ending::With(end) => {
            socket.send(Message::Text(end.message())).await?;
            end.close()
        }
        Ending::Complete => close(CloseCode::Normal),
        Ending::Garbled(code) => close(code),
        // The answer was made when it was read.
        Ending::Goodbye => return socket.flush().await,
        Ending::Lost => return Err(Error::ConnectionClosed),
    };
    socket.close(Some(close)).await
}

/// Closes this side of the connection, and reads what the other still sends until it closes its own. A connection that is
/// closed with bytes unread is reset, and a reset may take away what the reader has not read yet.
async fn linger<C>(mut connection: C)
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let end = async {
        connection.shutdown().await?;
        let mut bytes = [0; READ_BUFFER_BYTES];
        while connection.read(&mut bytes).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Late or broken, it is closed.
    let _ = timeout(FAREWELL, end).await;
}

#[cfg(test)]
mod tests;
