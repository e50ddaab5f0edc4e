//! Readers: connections that read a quote stream, and when each slot came to the last of them.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, SystemTime},
};

use anyhow::bail;
use service_kit::Clock;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    task::spawn_local,
    time::{sleep, timeout},
};

use super::Sealed;

/// Pause before a reader that was refused connects again.
const PAUSE: Duration = Duration::from_millis(200);

/// Room for what a reader has not taken apart yet: two events.
const ROOM: usize = 4_096;

/// Readers of one stream.
pub struct Readers {
    address: SocketAddr,
    path: String,
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
    pub fn new(address: SocketAddr, path: String) -> Self {
        Self {
            address,
            path,
            seen: Rc::default(),
            closed: watch::Sender::new(()),
        }
    }

    /// Opens so many more at once.
    pub fn open(&self, count: usize, last_event_id: Option<u64>) {
        let resume = last_event_id.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        let request = format!("GET {} HTTP/1.1\r\nhost: a\r\n{resume}\r\n", self.path);
        let request: Rc<str> = request.into();
        for _ in 0..count {
            let mut seen = self.seen.borrow_mut();
            let number = seen.newest.len();
            seen.newest.push(0);
            drop(seen);
            let read = read(
                self.address,
                Rc::clone(&request),
                Rc::clone(&self.seen),
                number,
            );
            let mut closed = self.closed.subscribe();
            spawn_local(async move {
                tokio::select! {
                    () = read => {}
                    _ = closed.changed() => {}
                }
            });
        }
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

/// One reader, which connects again until it is served.
async fn read(address: SocketAddr, request: Rc<str>, seen: Rc<RefCell<Seen>>, number: usize) {
    loop {
        let read = read_once(address, &request, &seen, number).await;
        if let Err(error) = read {
            eprintln!("reader {number}: {error}");
        }
        sleep(PAUSE).await;
    }
}

async fn read_once(
    address: SocketAddr,
    request: &str,
    seen: &RefCell<Seen>,
    number: usize,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut text = Vec::with_capacity(ROOM);
    while stream.read_buf(&mut text).await? > 0 {
        let now = Clock::system().now();
        while let Some((slot, length)) = next_slot(&mut text) {
            let mut seen = seen.borrow_mut();
            seen.longest = seen.longest.max(length);
            let (readers, last) = seen.slots.entry(slot).or_default();
            *readers += 1;
            *last = Some(now);
            if let Some(newest) = seen.newest.get_mut(number) {
                *newest = slot.max(*newest);
            }
        }
    }
    Ok(())
}

/// Takes the first whole event out of the text; the slot that it is of, and its length.
fn next_slot(text: &mut Vec<u8>) -> Option<(u64, usize)> {
    loop {
        let end = text.windows(2).position(|pair| pair == b"\n\n")? + 2;
        let event: Vec<u8> = text.drain(..end).collect();
        let mut lines = event.split(|byte| *byte == b'\n');
        let id = lines.find_map(|line| line.strip_prefix(b"id: "));
        let slot = id.and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        if let Some(slot) = slot {
            return Some((slot, end));
        }
    }
}
