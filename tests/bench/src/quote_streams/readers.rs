//! Readers: those of a quote stream, each with a connection of its own or many over one, and when each slot came to the last of
//! them.

mod multiplexed;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, SystemTime},
};

use anyhow::bail;
use memchr::memmem;
use service_kit::Clock;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    task::spawn_local,
    time::{sleep, timeout},
};

use self::multiplexed::Connection;
use super::Sealed;

/// Pause before a reader that was refused connects again.
const PAUSE: Duration = Duration::from_millis(200);

/// Room for what a reader has not taken apart yet: two events.
const ROOM: usize = 4_096;

/// How readers are sent what they read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub form: Form,
    /// Whether many of them share a connection, with HTTP/2.
    pub is_multiplexed: bool,
}

/// What they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Server-sent events.
    Events,
    /// Messages over WebSocket.
    Messages,
}

impl Form {
    /// The headers of a request that asks for it over a connection of its own.
    const fn headers(self) -> &'static str {
        match self {
            Self::Events => "",
            Self::Messages => {
                "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                 sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            }
        }
    }

    /// Takes the first whole event with a slot out of what was received after the head; the slot, and its length.
    fn next_slot(self, received: &mut Vec<u8>) -> Option<(u64, usize)> {
        match self {
            Self::Events => next_slot(received),
            Self::Messages => next_message_slot(received),
        }
    }
}

/// Readers of one stream.
pub struct Readers {
    address: SocketAddr,
    path: String,
    way: Way,
    seen: Rc<RefCell<Seen>>,
    closed: watch::Sender<()>,
}

/// What all readers have received.
#[derive(Default)]
struct Seen {
    /// Of each slot, how many readers were given it and when the last of them was.
    slots: BTreeMap<u64, (usize, Option<SystemTime>)>,
    /// The newest slot that each reader was given.
    newest: Vec<u64>,
    /// Bytes of the longest event.
    longest: usize,
}

impl Readers {
    pub fn new(address: SocketAddr, path: String, way: Way) -> Self {
        Self {
            address,
            path,
            way,
            seen: Rc::default(),
            closed: watch::Sender::new(()),
        }
    }

    /// Opens so many more at once.
    pub fn open(&self, count: usize, last_event_id: Option<u64>) {
        let first = self.seen.borrow().newest.len();
        self.seen.borrow_mut().newest.resize(first + count, 0);
        let numbers: Vec<usize> = (first..first + count).collect();
        let form = self.way.form;
        if self.way.is_multiplexed {
            let block = form.header_block(&self.path, last_event_id);
            for numbers in numbers.chunks(multiplexed::READERS) {
                let seen = Rc::clone(&self.seen);
                let connection = Connection::new(self.address, form, &block, numbers, seen);
                self.until_closed(connection.read());
            }
            return;
        }
        let resume = last_event_id.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        let (path, headers) = (&self.path, form.headers());
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n{headers}{resume}\r\n");
        let request: Rc<str> = request.into();
        for number in numbers {
            let reader = Reader {
                address: self.address,
                form,
                request: Rc::clone(&request),
                seen: Rc::clone(&self.seen),
                number,
            };
            self.until_closed(reader.read());
        }
    }

    fn until_closed(&self, reading: impl Future<Output = ()> + 'static) {
        let mut closed = self.closed.subscribe();
        spawn_local(async move {
            tokio::select! {
                () = reading => {}
                _ = closed.changed() => {}
            }
        });
    }

    /// Ends all of them, and forgets what they have received.
    pub fn close(&self) {
        self.closed.send_replace(());
        *self.seen.borrow_mut() = Seen::default();
    }

    /// How many readers were given this slot or a later one.
    pub fn having(&self, slot: u64) -> usize {
        let slot = slot.max(1);
        let seen = self.seen.borrow();
        seen.newest.iter().filter(|newest| **newest >= slot).count()
    }

    /// Bytes of the longest event so far.
    pub fn longest(&self) -> usize {
        self.seen.borrow().longest
    }

    /// Waits until so many readers were given this slot or a later one.
    ///
    /// # Errors
    /// When they were not in time.
    pub async fn until(&self, count: usize, slot: u64, patience: Duration) -> anyhow::Result<()> {
        let all = async {
            while self.having(slot) < count {
                sleep(Duration::from_millis(20)).await;
            }
        };
        if timeout(patience, all).await.is_err() {
            let having = self.having(slot);
            bail!("{having} of {count} readers were given slot {slot}");
        }
        Ok(())
    }

    /// Of each of these slots that came to all readers, how long after its seal it came to the last.
    pub fn last_after(&self, slots: &[Sealed], count: usize) -> Vec<Duration> {
        let seen = self.seen.borrow();
        let lag = |sealed: &Sealed| match seen.slots.get(&sealed.slot) {
            Some((readers, Some(last))) if *readers == count => last.duration_since(sealed.at).ok(),
            _ => None,
        };
        slots.iter().filter_map(lag).collect()
    }
}

impl Seen {
    /// A reader was given the event of a slot.
    fn note(&mut self, number: usize, (slot, length): (u64, usize), now: SystemTime) {
        self.longest = self.longest.max(length);
        let (readers, last) = self.slots.entry(slot).or_default();
        *readers += 1;
        *last = Some(now);
        if let Some(newest) = self.newest.get_mut(number) {
            *newest = slot.max(*newest);
        }
    }
}

/// One reader.
struct Reader {
    address: SocketAddr,
    form: Form,
    request: Rc<str>,
    seen: Rc<RefCell<Seen>>,
    number: usize,
}

impl Reader {
    /// Reads, and connects again until it is served.
    async fn read(self) {
        loop {
            if let Err(error) = self.read_once().await {
                eprintln!("reader {}: {error}", self.number);
            }
            sleep(PAUSE).await;
        }
    }

    async fn read_once(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(self.request.as_bytes()).await?;
        let mut received = Vec::with_capacity(ROOM);
        let mut has_head = false;
        while stream.read_buf(&mut received).await? > 0 {
            let now = Clock::system().now();
            has_head = has_head || take_head(&mut received);
            while has_head && let Some(event) = self.form.next_slot(&mut received) {
                self.seen.borrow_mut().note(self.number, event, now);
            }
        }
        Ok(())
    }
}

/// Takes the head of the answer away, once it is whole; whether it was.
fn take_head(received: &mut Vec<u8>) -> bool {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n");
    if let Some(end) = end {
        received.drain(..end + 4);
    }
    end.is_some()
}

/// Takes the first whole event with a slot out of the text; the slot, and the event's length.
fn next_slot(text: &mut Vec<u8>) -> Option<(u64, usize)> {
    loop {
        let end = memmem::find(text, b"\n\n")? + 2;
        let slot = slot_of(&text[..end]);
        text.drain(..end);
        if let Some(slot) = slot {
            return Some((slot, end));
        }
    }
}

/// The slot that an event names as its id.
fn slot_of(event: &[u8]) -> Option<u64> {
    let mut lines = event.split(|byte| *byte == b'\n');
    let id = lines.find_map(|line| line.strip_prefix(b"id: "))?;
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// As [`next_slot`], of messages: each is in one frame of a server, which is not masked.
fn next_message_slot(received: &mut Vec<u8>) -> Option<(u64, usize)> {
    loop {
        let (head, length) = match *received.get(1)? {
            126 => (
                4,
                usize::from(u16::from_be_bytes([*received.get(2)?, *received.get(3)?])),
            ),
            short => (2, short.into()),
        };
        let end = head + length;
        let message = received.get(head..end)?;
        let slot = id_of(message);
        received.drain(..end);
        if let Some(slot) = slot {
            return Some((slot, end));
        }
    }
}

/// The id that a message names before its data.
fn id_of(message: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\"id\":";
    let begin = message.windows(NAME.len()).position(|part| part == NAME)? + NAME.len();
    let id = message[begin..].split(|byte| *byte == b',').next()?;
    std::str::from_utf8(id).ok()?.parse().ok()
}
