//! Multiplexed readers: a connection that speaks HTTP/2 (RFC 9113) and carries the streams of many readers.
//!
//! Each frame is taken apart where it lies, as a proxy does that hands it on: a client library would spend more on a reader than
//! the server does, and the last of them would be waited for by the measurement alone.

use std::{cell::RefCell, io, net::SocketAddr, rc::Rc};

use service_kit::Clock;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};

use super::{Form, PAUSE, Seen};

/// Readers over one connection: what the protocol recommends a server to allow at least.
pub const READERS: usize = 100;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Room for what has come of all readers and is not taken apart yet: what a slot has for a hundred of them, which a proxy reads at once.
const ROOM: usize = 64 * 1_024;

/// Length, kind, flags and stream of a frame.
const FRAME_HEAD: usize = 9;

/// Kinds of frames.
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const SETTINGS: u8 = 0x4;
const PING: u8 = 0x6;
const WINDOW_UPDATE: u8 = 0x8;

/// Flags of frames.
const ACK: u8 = 0x1;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// Bytes that the server may send over a stream, and over all of them: more than it does.
const WINDOW: u32 = 1 << 30;

/// The setting of a stream's window.
const INITIAL_WINDOW_SIZE: u16 = 0x4;

/// What a header block begins with that answers 200: the entry of the protocol's table.
const OK: u8 = 0x88;

/// The readers of one connection.
pub struct Connection {
    address: SocketAddr,
    form: Form,
    /// All that is asked.
    requests: Vec<u8>,
    readers: Vec<usize>,
    seen: Rc<RefCell<Seen>>,
}

impl Connection {
    /// Readers that each ask with this header block.
    pub fn new(
        address: SocketAddr,
        form: Form,
        block: &[u8],
        readers: &[usize],
        seen: Rc<RefCell<Seen>>,
    ) -> Self {
        let mut requests = PREFACE.to_vec();
        let mut setting = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        setting.extend(WINDOW.to_be_bytes());
        put_frame(&mut requests, SETTINGS, 0, 0, &setting);
        put_frame(&mut requests, WINDOW_UPDATE, 0, 0, &WINDOW.to_be_bytes());
        let flags = match form {
            Form::Events => END_STREAM | END_HEADERS,
            Form::Messages => END_HEADERS,
        };
        for stream in (1..).step_by(2).take(readers.len()) {
            put_frame(&mut requests, HEADERS, flags, stream, block);
        }
        Self {
            address,
            form,
            requests,
            readers: readers.to_vec(),
            seen,
        }
    }

    /// Reads, and connects again until all are served.
    pub async fn read(self) {
        loop {
            if let Err(error) = self.read_once().await {
                eprintln!("readers from {:?}: {error}", self.readers.first());
            }
            sleep(PAUSE).await;
        }
    }

    async fn read_once(&self) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(&self.requests).await?;
        let mut texts = vec![Vec::new(); self.readers.len()];
        let mut received = Vec::with_capacity(ROOM);
        while stream.read_buf(&mut received).await? > 0 {
            let mut rest = received.as_slice();
            let mut answers = Vec::new();
            while let Some((frame, after)) = Frame::first(rest) {
                self.take(frame, &mut texts, &mut answers)?;
                rest = after;
            }
            let taken = received.len() - rest.len();
            received.drain(..taken);
            stream.write_all(&answers).await?;
        }
        Ok(())
    }

    /// Takes a frame in; what it has to be answered with is appended to `answers`.
    fn take(
        &self,
        frame: Frame<'_>,
        texts: &mut [Vec<u8>],
        answers: &mut Vec<u8>,
    ) -> io::Result<()> {
        match frame.kind {
            SETTINGS if frame.flags & ACK == 0 => put_frame(answers, SETTINGS, ACK, 0, &[]),
            PING if frame.flags & ACK == 0 => put_frame(answers, PING, ACK, 0, frame.payload),
            SETTINGS | PING | WINDOW_UPDATE => {}
            HEADERS if frame.payload.first() == Some(&OK) => {}
            DATA => self.take_data(frame, texts)?,
            kind => return Err(unexpected(format!("a frame of kind {kind}"))),
        }
        Ok(())
    }

    fn take_data(&self, frame: Frame<'_>, texts: &mut [Vec<u8>]) -> io::Result<()> {
        let now = Clock::system().now();
        let place = (frame.stream as usize).saturating_sub(1) / 2;
        let (Some(text), Some(reader)) = (texts.get_mut(place), self.readers.get(place)) else {
            return Err(unexpected(format!("data of stream {}", frame.stream)));
        };
        text.extend_from_slice(frame.payload);
        while let Some(event) = self.form.next_slot(text) {
            self.seen.borrow_mut().note(*reader, event, now);
        }
        Ok(())
    }
}

fn unexpected(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A frame that has come.
#[derive(Clone, Copy)]
struct Frame<'a> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The first frame of what was received, once it is whole, and what follows it.
    fn first(received: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = received.split_first_chunk::<FRAME_HEAD>()?;
        let [a, b, c, kind, flags, stream @ ..] = *head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let (payload, after) = rest.split_at_checked(length)?;
        let frame = Self {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        };
        Some((frame, after))
    }
}

fn put_frame(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("a frame is short");
    bytes.extend(&length.to_be_bytes()[1..]);
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
}

impl Form {
    /// The headers of a request for it (RFC 7541): of the table where it has them, and otherwise as they are.
    pub(super) fn header_block(self, path: &str, last_event_id: Option<u64>) -> Vec<u8> {
        const METHOD: u8 = 0x02;
        const GET: u8 = 0x82;
        const HTTP: u8 = 0x86;
        const PATH: u8 = 0x04;
        const AUTHORITY: u8 = 0x01;
        let mut block = Vec::new();
        match self {
            Self::Events => block.push(GET),
            Self::Messages => {
                block.push(METHOD);
                put_text(&mut block, "CONNECT");
                put_header(&mut block, ":protocol", "websocket");
            }
        }
        block.extend([HTTP, PATH]);
        put_text(&mut block, path);
        block.push(AUTHORITY);
        put_text(&mut block, "a");
        if self == Self::Messages {
            put_header(&mut block, "sec-websocket-version", "13");
        }
        if let Some(id) = last_event_id {
            put_header(&mut block, "last-event-id", &id.to_string());
        }
        block
    }
}

/// A header of which the table does not have the name.
fn put_header(block: &mut Vec<u8>, name: &str, value: &str) {
    const NEW_NAME: u8 = 0x00;
    block.push(NEW_NAME);
    put_text(block, name);
    put_text(block, value);
}

/// A text behind its length: seven bits, of which the highest number says that more follow, seven in a byte.
fn put_text(block: &mut Vec<u8>, text: &str) {
    const MOST: usize = 0x7f;
    const GOES_ON: u8 = 0x80;
    let low = |number: usize| u8::try_from(number & MOST).expect("seven bits");
    block.push(low(text.len().min(MOST)));
    if let Some(mut rest) = text.len().checked_sub(MOST) {
        while rest > MOST {
            block.push(low(rest) | GOES_ON);
            rest >>= 7;
        }
        block.push(low(rest));
    }
    block.extend(text.as_bytes());
}
