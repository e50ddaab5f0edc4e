//! Session of a socket: what its reader is sent, what the reader must not send, and how both part.

use tokio::{
    io::{DuplexStream, duplex},
    sync::mpsc,
    task::JoinHandle,
};

use super::*;

/// What the connection holds on its way: enough that no step of a test waits for the other side to read.
const ON_ITS_WAY: usize = 64 * 1024;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A frame of text from a client, unmasked, which no client may send.
const UNMASKED: &[u8] = b"\x81\x01a";

/// A masked frame of text of which one byte is no UTF-8.
const NO_TEXT: &[u8] = b"\x81\x81\0\0\0\0\xff";

/// The head of a masked frame of a mebibyte, without the mebibyte.
const LONG_HEAD: &[u8] = b"\x82\xff\0\0\0\0\0\x10\0\0\0\0\0\0";

struct Scripted(mpsc::Receiver<SocketEvent>);

impl SocketEvents for Scripted {
    async fn next(&mut self) -> Option<SocketEvent> {
        self.0.recv().await
    }
}

/// A session, and the other side of its connection.
struct Scene {
    events: mpsc::Sender<SocketEvent>,
    reader: WebSocketStream<DuplexStream>,
    session: JoinHandle<()>,
}

impl Scene {
    async fn begin() -> Self {
        let (near, far) = duplex(ON_ITS_WAY);
        let (events, receiver) = mpsc::channel(1);
        Self {
            events,
            reader: WebSocketStream::from_raw_socket(far, Role::Client, None).await,
            session: tokio::spawn(run(near, Scripted(receiver))),
        }
    }

    async fn show(&self, event: SocketEvent) {
        self.events.send(event).await.expect("a session");
    }

    async fn next(&mut self) -> Option<Message> {
        let next = timeout(PATIENCE, self.reader.next()).await;
        next.expect("in time").transpose().expect("a WebSocket")
    }

    /// The code of the last message, where there is one, and of the closing. The session ends then.
    async fn end(mut self) -> (Option<String>, u16, String) {
        let mut last = None;
        let close = loop {
            match self.next().await.expect("a goodbye") {
                Message::Text(text) => {
                    let event: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                    assert_eq!(event["event"], "end");
                    last = event["data"]["code"].as_str().map(str::to_owned);
                }
                Message::Close(close) => break close.expect("a code"),
                other => panic!("{other:?} before the goodbye"),
            }
        };
        assert_eq!(self.next().await, None);
        drop(self.reader);
        let ended = timeout(PATIENCE, self.session).await;
        ended.expect("in time").expect("no panic");
        (last, close.code.into(), close.reason.to_string())
    }
}

#[tokio::test]
async fn an_event_is_a_message_a_beat_a_ping_and_the_end_both_a_message_and_a_closing() {
    let mut scene = Scene::begin().await;
    let text = Utf8Bytes::from(r#"{"event":"quote","id":7,"data":{}}"#);
    scene.show(SocketEvent::Message(text.clone())).await;
    assert_eq!(scene.next().await, Some(Message::Text(text)));
    scene.show(SocketEvent::Beat("true in slot 8".into())).await;
    let ping = Message::Ping("true in slot 8".into());
    assert_eq!(scene.next().await, Some(ping));
    let end = StreamEnd::from(&ApiError::Stopping);
    scene.show(SocketEvent::End(end)).await;
    let stopping = "stopping".to_owned();
    assert_eq!(scene.end().await, (Some(stopping.clone()), 1001, stopping));
}

#[tokio::test]
async fn when_all_was_said_the_session_closes_without_a_problem() {
    let mut scene = Scene::begin().await;
    scene.events = mpsc::channel(1).0;
    assert_eq!(scene.end().await, (None, 1000, String::new()));
}

#[tokio::test]
async fn a_message_of_the_reader_ends_the_session_with_what_is_wrong_about_it() {
    let longest = "a".repeat(MOST_MESSAGE_BYTES);
    for (message, number, code) in [
        (Message::text("quotes, please"), 1008, "unexpected_message"),
        (Message::text(longest.clone()), 1008, "unexpected_message"),
        (Message::binary(vec![0]), 1008, "unexpected_message"),
        (Message::text(longest + "a"), 1009, "message_too_large"),
        (Message::binary(vec![0; 1 << 15]), 1009, "message_too_large"),
    ] {
        let mut scene = Scene::begin().await;
        scene.reader.send(message).await.expect("a connection");
        let code = code.to_owned();
        assert_eq!(scene.end().await, (Some(code.clone()), number, code));
    }
}

#[tokio::test]
async fn what_is_no_websocket_ends_the_session_before_it_is_read_to_its_end() {
    for (bytes, number, code) in [
        (UNMASKED, 1002, None),
        (NO_TEXT, 1007, None),
        (LONG_HEAD, 1009, Some("message_too_large")),
    ] {
        let mut scene = Scene::begin().await;
        let connection = scene.reader.get_mut();
        connection.write_all(bytes).await.expect("a connection");
        let (last, close, _) = scene.end().await;
        assert_eq!((last.as_deref(), close), (code, number), "{bytes:?}");
    }
}

#[tokio::test]
async fn a_ping_is_answered_while_nothing_happens_and_a_goodbye_ends_the_session() {
    let mut scene = Scene::begin().await;
    let ping = Message::Ping("a".into());
    scene.reader.send(ping).await.expect("a connection");
    assert_eq!(scene.next().await, Some(Message::Pong("a".into())));
    scene.reader.close(None).await.expect("a connection");
    assert_eq!(scene.next().await, Some(Message::Close(None)));
    assert_eq!(scene.next().await, None);
    drop(scene.reader);
    let ended = timeout(PATIENCE, scene.session).await;
    ended.expect("in time").expect("no panic");
}

#[tokio::test]
async fn a_reader_that_goes_without_a_word_ends_the_session() {
    let scene = Scene::begin().await;
    drop(scene.reader);
    let ended = timeout(PATIENCE, scene.session).await;
    ended.expect("in time").expect("no panic");
}
