//! Joined stream: a request of any number of keys, over as many slot streams as it takes, joined slot by slot.
//!
//! A server takes only so many keys in one request. What exceeds that is divided among *strands*, each a [`SlotStream`] for its
//! share of the keys, and a slot is given out once every strand has it. A strand that is lost while another one is connected is
//! opened again and replays what it lacks; nothing of the others is lost meanwhile. With one strand it is that strand.

mod join;
mod shares;

use std::{collections::BTreeMap, fmt, time::Duration};

use futures::future::{BoxFuture, select_all, try_join_all};
use tokio::time::{Instant, sleep_until};

use self::{
    join::{Join, StrandId},
    shares::divide,
};
use crate::{
    error::StreamError, generation::Generation, limits::LONGEST_RECONNECT_PAUSE, reconnect,
    request::Request, request_limits::RequestLimits, servers::Servers, slot_assembly::Assembled,
    slot_stream::SlotStream, wire,
};

/// Pause before a lost strand is opened again; it doubles with each failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// A live subscription to whole slots.
#[derive(Debug)]
pub struct JoinedStream {
    servers: Servers,
    limits: RequestLimits,
    strands: BTreeMap<StrandId, Strand>,
    join: Join,
    /// The number of the next strand.
    next: StrandId,
    generation: Generation,
    /// Which strand is listened to first, another one each time.
    turn: usize,
}

#[derive(Debug)]
struct Strand {
    share: Request,
    connection: Connection,
    /// Failures since something came.
    failures: u32,
}

enum Connection {
    /// It may be opened from this moment on.
    Closed(Instant),
    Opening(BoxFuture<'static, Result<SlotStream, StreamError>>),
    Open(Box<SlotStream>),
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed(_) => "closed",
            Self::Opening(_) => "opening",
            Self::Open(_) => "open",
        })
    }
}

/// What the wait for a strand ends with.
enum Event {
    MayOpen,
    Opened(Result<Box<SlotStream>, StreamError>),
    Came(Result<Vec<Assembled>, StreamError>),
}

impl JoinedStream {
    /// Connects and subscribes with as many strands as the request takes, and returns once all are accepted. What is asked for
    /// and what is given out is as with [`SlotStream::open`].
    ///
    /// # Errors
    /// As [`SlotStream::open`]; [`StreamError::TooManyKeys`] when [`MAX_STRANDS`](crate::limits::MAX_STRANDS) strands do not take them.
    pub async fn open(
        servers: impl Into<Servers>,
        request: Request,
        limits: RequestLimits,
    ) -> Result<Self, StreamError> {
        let servers = servers.into();
        let shares = shares_of(&request, &[], &limits)?;
        let generation = Generation::default().next();
        let mut join = Join::default();
        join.wanted(generation, &request);
        let opening = (0..).zip(shares.into_iter().flatten());
        let opening = opening.map(|(id, share)| {
            // The servers are counted by the first strand alone.
            let servers = if id == 0 {
                servers.clone()
            } else {
                servers.counted_apart()
            };
            async move {
                let stream = SlotStream::open(servers, share.clone()).await?;
                Ok::<_, StreamError>((id, share, stream))
            }
        });
        let mut strands = BTreeMap::new();
        for (id, share, stream) in try_join_all(opening).await? {
            join.opened(id, stream.asked(), share.from_slot);
            strands.insert(id, Strand::open(share, stream));
        }
        if strands.len() > 1 {
            tracing::info!(
                strands = strands.len(),
                keys = request.keys(),
                "the keys are split over several streams"
            );
        }
        Ok(Self {
            servers,
            limits,
            next: strands.len(),
            strands,
            join,
            generation,
            turn: 0,
        })
    }

    /// Replaces the filter while the stream goes on, as [`SlotStream::replace`]. Keys that stay stay in their strands, and
    /// strands whose share stays the same are not asked.
    ///
    /// # Errors
    /// [`StreamError::Refused`] for a request that no server accepts, [`StreamError::TooManyKeys`], and then the old one stays
    /// in force.
    pub fn replace(&mut self, request: Request) -> Result<Generation, StreamError> {
        let request = Request {
            from_slot: None,
            ..request
        };
        let before: Vec<&Request> = self.strands.values().map(|strand| &strand.share).collect();
        let shares = shares_of(&request, &before, &self.limits)?;
        self.generation = self.generation.next();
        self.join.wanted(self.generation, &request);
        let (kept, added) = shares.split_at(self.strands.len().min(shares.len()));
        let ids: Vec<StrandId> = self.strands.keys().copied().collect();
        // Where nothing is to be asked, one is asked all the same: what it shows proves that the stream is there.
        let is_asked = |(share, strand): (&Option<Request>, &Strand)| {
            share.as_ref().is_some_and(|share| *share != strand.share)
        };
        let asks_none = added.is_empty() && !kept.iter().zip(self.strands.values()).any(is_asked);
        let first_left = kept.iter().position(Option::is_some);
        for (at, (id, share)) in ids.into_iter().zip(kept).enumerate() {
            match share {
                Some(share) => {
                    let must_ask = asks_none && Some(at) == first_left;
                    self.replace_share(id, share.clone(), must_ask)?;
                }
                None => {
                    self.strands.remove(&id);
                    self.join.removed(id);
                }
            }
        }
        for share in added.iter().flatten().cloned() {
            let id = self.next;
            self.next += 1;
            tracing::info!(
                strands = self.strands.len() + 1,
                "another stream takes what the others cannot"
            );
            self.join.opened(id, FIRST_GENERATION, None);
            self.strands.insert(id, Strand::closed(share));
        }
        Ok(self.generation)
    }

    fn replace_share(
        &mut self,
        id: StrandId,
        share: Request,
        must_ask: bool,
    ) -> Result<(), StreamError> {
        let Some(strand) = self.strands.get_mut(&id) else {
            return Ok(());
        };
        if strand.share == share && !must_ask {
            return Ok(());
        }
        strand.share = share;
        let asked = if let Connection::Open(stream) = &mut strand.connection {
            stream.replace(strand.share.clone())?
        } else {
            // It is opened with the new share.
            strand.connection = Connection::Closed(Instant::now());
            FIRST_GENERATION
        };
        self.join.asked(id, asked);
        Ok(())
    }

    /// Asks for what [`JoinedStream::replace`] has changed, for a consumer that takes nothing for a while: otherwise
    /// [`JoinedStream::next_batch`] does. Cancel-safe.
    pub async fn ask(&mut self) {
        for strand in self.strands.values_mut() {
            if let Connection::Open(stream) = &mut strand.connection {
                stream.ask().await;
            }
        }
    }

    /// What can be given out next, at least one item. Cancel-safe.
    ///
    /// # Errors
    /// Why the stream is over: the last strand is lost, one of them cannot be opened again, or too many slots wait for it.
    pub async fn next_batch(&mut self) -> Result<Vec<Assembled>, StreamError> {
        loop {
            let joined = self.join.take();
            if !joined.is_empty() {
                return Ok(joined);
            }
            let (id, event) = self.wait().await;
            self.take_in(id, event)?;
        }
    }

    /// Waits for whatever comes first of any strand.
    async fn wait(&mut self) -> (StrandId, Event) {
        let strands = self.strands.iter_mut();
        let mut events: Vec<_> = strands
            .map(|(id, strand)| Box::pin(async move { (*id, strand.connection.event().await) }))
            .collect();
        if events.is_empty() {
            return std::future::pending().await;
        }
        let first = self.turn % events.len();
        events.rotate_left(first);
        self.turn = first + 1;
        let (event, _, _) = select_all(events).await;
        event
    }

    fn take_in(&mut self, id: StrandId, event: Event) -> Result<(), StreamError> {
        let Some(strand) = self.strands.get_mut(&id) else {
            return Ok(());
        };
        match event {
            Event::MayOpen => {
                let request = Request {
                    from_slot: self.join.resume_slot(id),
                    ..strand.share.clone()
                };
                let servers = self.servers.counted_apart();
                let opening = Box::pin(SlotStream::open(servers, request));
                strand.connection = Connection::Opening(opening);
                Ok(())
            }
            Event::Opened(Ok(stream)) => {
                self.join.opened(id, stream.asked(), None);
                strand.connection = Connection::Open(stream);
                Ok(())
            }
            Event::Came(Ok(assembled)) => {
                strand.failures = 0;
                self.join.add(id, assembled)
            }
            Event::Opened(Err(error)) | Event::Came(Err(error)) => self.lost(id, error),
        }
    }

    /// A strand is over, or did not open. It is opened again, unless nothing is left or that is in vain.
    fn lost(&mut self, id: StrandId, error: StreamError) -> Result<(), StreamError> {
        let in_vain = !error.is_retryable() || error.is_replay_unavailable();
        if let Some(strand) = self.strands.get_mut(&id) {
            let pause = reconnect::pause(FIRST_PAUSE, strand.failures, LONGEST_RECONNECT_PAUSE);
            strand.failures = strand.failures.saturating_add(1);
            strand.connection = Connection::Closed(Instant::now() + pause);
        }
        if in_vain || !self.strands.values().any(Strand::is_open) {
            return Err(error);
        }
        tracing::warn!(%error, strand = id, "one of the streams over which the keys are split is lost; it is opened again");
        self.join.lost(id);
        Ok(())
    }
}

/// The generation of the first request of a [`SlotStream`].
const FIRST_GENERATION: Generation = Generation(1);

impl Strand {
    fn open(share: Request, stream: SlotStream) -> Self {
        Self {
            connection: Connection::Open(Box::new(stream)),
            ..Self::closed(share)
        }
    }

    fn closed(share: Request) -> Self {
        Self {
            share: Request {
                from_slot: None,
                ..share
            },
            connection: Connection::Closed(Instant::now()),
            failures: 0,
        }
    }

    const fn is_open(&self) -> bool {
        matches!(self.connection, Connection::Open(_))
    }
}

impl Connection {
    /// Waits for what comes next. Cancel-safe.
    async fn event(&mut self) -> Event {
        match self {
            Self::Closed(until) => {
                sleep_until(*until).await;
                Event::MayOpen
            }
            Self::Opening(opening) => Event::Opened(opening.await.map(Box::new)),
            Self::Open(stream) => Event::Came(stream.next_batch().await),
        }
    }
}

fn shares_of(
    request: &Request,
    before: &[&Request],
    limits: &RequestLimits,
) -> Result<Vec<Option<Request>>, StreamError> {
    wire::validate(request)?;
    divide(request, before, limits)
}
