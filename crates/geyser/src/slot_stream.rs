//! Slot stream: one server's stream, of which whole slots alone come out, and a filter that can be replaced.
//!
//! It carries out what [`SlotAssembler`] decides: a suspect slot is asked for again on the same stream, or on a side stream
//! where the server has ignored that.

use std::time::Duration;

use futures::future::OptionFuture;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use crate::{
    error::StreamError,
    generation::Generation,
    request::{Endpoint, Request},
    slot_assembly::{Assembled, ReplayPath, SentRequest, SlotAssembler},
    stream::Stream,
    update::Update,
    wire,
};

/// Number of the stream as a source of the assembler.
const MAIN: usize = 0;

/// Number of the side stream.
const SIDE: usize = 1;

/// Pause before a side stream is opened again. A slot must pass meanwhile, or the next one would show no more than the last.
const SIDE_PAUSE: Duration = Duration::from_secs(1);

/// A live subscription to whole slots.
#[derive(Debug)]
pub struct SlotStream {
    assembler: SlotAssembler,
    endpoint: Endpoint,
    /// What the consumer asks for, in no generation.
    request: Request,
    /// Generation in which the consumer asked for it.
    filter: Generation,
    /// The newest generation given to a request.
    generation: Generation,
    main: Stream,
    /// A request on its way: kept until it is sent, should the consumer stop waiting meanwhile.
    outgoing: Option<(SentRequest, Request)>,
    /// Whether the consumer's request was not sent yet.
    is_replaced: bool,
    side: Side,
}

#[derive(Debug)]
enum Side {
    /// It may be opened from this moment on.
    Closed(Instant),
    Opening(SentRequest, JoinHandle<Result<Stream, StreamError>>),
    Open(Stream),
}

/// What a wait ends with.
enum Event {
    Updates(usize, Vec<Update>),
    SideOpened(Result<Stream, StreamError>),
    SideLost(StreamError),
    SideMayOpen,
}

impl SlotStream {
    /// Connects and subscribes. `request` must ask for slots and block metadata at commitment processed. With `from_slot` every
    /// slot from it on is given out, or the stream ends; otherwise the first one that begins under the filter.
    ///
    /// # Errors
    /// As [`Stream::open`].
    pub async fn open(endpoint: &Endpoint, request: Request) -> Result<Self, StreamError> {
        let generation = Generation::default().next();
        let sent = SentRequest {
            generation,
            filter: generation,
            from_slot: request.from_slot,
        };
        let main = Stream::open(endpoint, request.in_generation(generation)).await?;
        let mut assembler = SlotAssembler::new(2);
        assembler.connected(MAIN, sent);
        Ok(Self {
            assembler,
            endpoint: endpoint.clone(),
            request: Request {
                from_slot: None,
                ..request
            },
            filter: generation,
            generation,
            main,
            outgoing: None,
            is_replaced: false,
            side: Side::Closed(Instant::now()),
        })
    }

    /// Replaces the filter while the stream goes on; of several replacements that wait the last one counts. It is in force
    /// once [`Assembled::InForce`] names the generation that this returns, or a later one.
    ///
    /// # Errors
    /// [`StreamError::Refused`] for a request that no server accepts, and then the old one stays in force.
    pub fn replace(&mut self, request: Request) -> Result<Generation, StreamError> {
        self.generation = self.generation.next();
        wire::validate(&request.in_generation(self.generation))?;
        self.request = Request {
            from_slot: None,
            ..request
        };
        self.filter = self.generation;
        self.is_replaced = true;
        Ok(self.filter)
    }

    /// What can be given out next, at least one item. Cancel-safe.
    ///
    /// # Errors
    /// Why the stream is over. What was not given out by then is not known to be whole.
    pub async fn next_batch(&mut self) -> Result<Vec<Assembled>, StreamError> {
        loop {
            self.send_due().await?;
            self.open_side();
            match self.event().await? {
                Event::Updates(source, updates) => {
                    for update in updates {
                        self.assembler.update(source, update);
                    }
                }
                Event::SideOpened(Ok(stream)) => self.side_opened(stream),
                Event::SideOpened(Err(error)) | Event::SideLost(error) => {
                    tracing::warn!(%error, "side stream lost");
                    self.close_side();
                }
                Event::SideMayOpen => {}
            }
            let assembled = self.assembler.take();
            if !assembled.is_empty() {
                return Ok(assembled);
            }
        }
    }

    /// Sends the consumer's new filter, or asks for a replay, when the request before has come into force.
    async fn send_due(&mut self) -> Result<(), StreamError> {
        if self.outgoing.is_none() && self.assembler.may_request(MAIN) {
            let due = self.assembler.replay_due(MAIN);
            let from_slot = due
                .filter(|due| due.path == ReplayPath::SameStream)
                .map(|due| due.from_slot);
            if self.is_replaced || from_slot.is_some() {
                self.outgoing = Some(self.prepare(from_slot));
                self.is_replaced = false;
            }
        }
        if let Some((sent, request)) = &self.outgoing {
            tracing::debug!(generation = %sent.generation, from_slot = sent.from_slot, "subscription replaced");
            self.main.replace(request.clone()).await?;
            self.assembler.requested(MAIN, *sent);
            self.outgoing = None;
        }
        Ok(())
    }

    /// The next request, of a new generation.
    fn prepare(&mut self, from_slot: Option<u64>) -> (SentRequest, Request) {
        self.generation = self.generation.next();
        let request = Request {
            from_slot,
            ..self.request.in_generation(self.generation)
        };
        let sent = SentRequest {
            generation: self.generation,
            filter: self.filter,
            from_slot,
        };
        (sent, request)
    }

    /// Opens the side stream where the stream does not replay, and closes it when nothing is suspect any more.
    fn open_side(&mut self) {
        if !self.assembler.has_suspect(MAIN) {
            if matches!(self.side, Side::Open(_)) {
                self.close_side();
            }
            return;
        }
        let due = self.assembler.replay_due(MAIN);
        let Some(due) = due.filter(|due| due.path == ReplayPath::SideStream) else {
            return;
        };
        match &self.side {
            Side::Closed(from) if *from <= Instant::now() => {
                tracing::info!(
                    from_slot = due.from_slot,
                    "asking for slots on a side stream"
                );
                let (sent, request) = self.prepare(Some(due.from_slot));
                let endpoint = self.endpoint.clone();
                let opening = async move { Stream::open(&endpoint, request).await };
                self.side = Side::Opening(sent, tokio::spawn(opening));
            }
            Side::Open(_) if self.assembler.replay_due(SIDE).is_some() => self.close_side(),
            Side::Closed(_) | Side::Opening(..) | Side::Open(_) => {}
        }
    }

    fn side_opened(&mut self, stream: Stream) {
        let before = std::mem::replace(&mut self.side, Side::Open(stream));
        if let Side::Opening(sent, _) = before {
            self.assembler.connected(SIDE, sent);
        }
    }

    fn close_side(&mut self) {
        self.side = Side::Closed(Instant::now() + SIDE_PAUSE);
        self.assembler.disconnected(SIDE);
    }

    /// Waits for whatever comes first.
    async fn event(&mut self) -> Result<Event, StreamError> {
        let waits_for_side = self
            .assembler
            .replay_due(MAIN)
            .is_some_and(|due| due.path == ReplayPath::SideStream);
        let (mut opening, mut side, mut pause) = (None, None, None);
        match &mut self.side {
            Side::Opening(_, task) => opening = Some(task),
            Side::Open(stream) => side = Some(stream),
            Side::Closed(from) if waits_for_side => pause = Some(*from),
            Side::Closed(_) => {}
        }
        let side = OptionFuture::from(side.map(Stream::next_batch));
        tokio::select! {
            updates = self.main.next_batch() => Ok(Event::Updates(MAIN, updates?.collect())),
            Some(opened) = OptionFuture::from(opening) => {
                Ok(Event::SideOpened(opened.unwrap_or(Err(StreamError::Closed))))
            }
            Some(updates) = side => Ok(match updates {
                Ok(updates) => Event::Updates(SIDE, updates.collect()),
                Err(error) => Event::SideLost(error),
            }),
            Some(()) = OptionFuture::from(pause.map(sleep_until)) => Ok(Event::SideMayOpen),
        }
    }
}
