//! Slot stream: one server's stream, of which whole slots alone come out, and a filter that can be replaced.
//!
//! It carries out what [`SlotAssembler`] decides: a suspect slot is asked for again on the same stream, or on a side stream
//! where the server has ignored that.

use std::time::Duration;

use futures::future::OptionFuture;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
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

/// Time in which a side stream must have brought what it was opened for: several slots.
const SIDE_PATIENCE: Duration = Duration::from_secs(2);

/// Side streams in a row that may bring nothing before the slots count as gone.
const SIDE_ATTEMPTS: u32 = 4;

/// Time without any update after which a replay that was asked for counts as over. It is over as soon as a new slot begins; this
/// is for chains that stand still.
const REST: Duration = Duration::from_millis(200);

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
    /// Side streams in a row that brought nothing.
    side_attempts: u32,
    /// Whether nothing has come for a while.
    at_rest: bool,
}

#[derive(Debug)]
enum Side {
    /// It may be opened from this moment on.
    Closed(Instant),
    Opening(SentRequest, JoinHandle<Result<Stream, StreamError>>),
    /// With the time by which it must have brought what it was opened for.
    Open(Stream, Instant),
}

/// What a wait ends with.
enum Event {
    Updates(usize, Vec<Update>),
    SideOpened(Result<Stream, StreamError>),
    SideLost(StreamError),
    SideMayOpen,
    SideBroughtNothing,
    Rest,
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
            side_attempts: 0,
            at_rest: false,
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
            self.open_side()?;
            match self.event().await? {
                Event::Updates(source, updates) => {
                    self.at_rest = false;
                    for update in updates {
                        self.assembler.update(source, update);
                    }
                }
                Event::SideOpened(Ok(stream)) => self.side_opened(stream),
                Event::SideOpened(Err(error)) | Event::SideLost(error) => {
                    tracing::warn!(%error, "side stream lost");
                    self.side_brought_nothing()?;
                }
                Event::SideMayOpen => {}
                Event::SideBroughtNothing => self.side_brought_nothing()?,
                Event::Rest => self.at_rest = true,
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
            let due = self.assembler.replay_due(MAIN, self.at_rest);
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
        self.assembler.sending(self.generation);
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
    fn open_side(&mut self) -> Result<(), StreamError> {
        if !self.assembler.has_suspect(MAIN) {
            self.side_attempts = 0;
            if matches!(self.side, Side::Open(..)) {
                self.close_side();
            }
            return Ok(());
        }
        let due = self.assembler.replay_due(MAIN, self.at_rest);
        let Some(due) = due.filter(|due| due.path == ReplayPath::SideStream) else {
            return Ok(());
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
            // It has begun with a slot that is open there too: another one may not.
            Side::Open(..) if self.assembler.replay_due(SIDE, false).is_some() => {
                return self.side_brought_nothing();
            }
            Side::Closed(_) | Side::Opening(..) | Side::Open(..) => {}
        }
        Ok(())
    }

    fn side_opened(&mut self, stream: Stream) {
        let before = std::mem::replace(
            &mut self.side,
            Side::Open(stream, Instant::now() + SIDE_PATIENCE),
        );
        if let Side::Opening(sent, _) = before {
            self.assembler.connected(SIDE, sent);
        }
    }

    fn side_brought_nothing(&mut self) -> Result<(), StreamError> {
        self.close_side();
        self.side_attempts += 1;
        if self.side_attempts < SIDE_ATTEMPTS {
            return Ok(());
        }
        let missing = self.assembler.first_suspect(MAIN);
        Err(StreamError::ReplayUnavailable {
            first_available: missing.map(|slot| slot + 1),
            message: "slots that were asked for again did not come".to_owned(),
        })
    }

    fn close_side(&mut self) {
        self.side = Side::Closed(Instant::now() + SIDE_PAUSE);
        self.assembler.disconnected(SIDE);
    }

    /// Waits for whatever comes first.
    async fn event(&mut self) -> Result<Event, StreamError> {
        let waits_for_side = self
            .assembler
            .replay_due(MAIN, self.at_rest)
            .is_some_and(|due| due.path == ReplayPath::SideStream);
        let may_rest = !self.at_rest && self.assembler.has_suspect(MAIN);
        let (mut opening, mut side, mut pause, mut patience) = (None, None, None, None);
        match &mut self.side {
            Side::Opening(_, task) => opening = Some(task),
            Side::Open(stream, until) => (side, patience) = (Some(stream), Some(*until)),
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
            Some(()) = OptionFuture::from(patience.map(sleep_until)) => Ok(Event::SideBroughtNothing),
            () = sleep(REST), if may_rest => Ok(Event::Rest),
        }
    }
}
