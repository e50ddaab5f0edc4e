//! Slot stream: whole slots alone, each from its fastest server, under a filter that can be replaced.
//!
//! It carries out what [`SlotAssembler`] decides: a suspect slot is asked for again on the same stream, or on a side stream
//! where the server has ignored that. A server that is lost while another one is connected is connected to again, and nothing
//! waits for it.

mod link;
mod start_gate;

use std::time::Duration;

use futures::future::select_all;
use tokio::time::Instant;

use self::{
    link::{Event, Link, Main, Part, Side},
    start_gate::StartGate,
};
use crate::{
    error::StreamError,
    generation::Generation,
    limits,
    race::Race,
    request::Request,
    servers::Servers,
    slot_assembly::{
        Assembled, Finding, ReplayPath, SOURCES_OF_SERVER, SentRequest, SlotAssembler,
    },
    stream::Stream,
    update::{Body, Update},
    wire,
};

/// A live subscription to whole slots.
#[derive(Debug)]
pub struct SlotStream {
    assembler: SlotAssembler,
    servers: Servers,
    /// By server.
    links: Vec<Link>,
    /// What the consumer asks for, in no generation.
    request: Request,
    /// Generation in which the consumer asked for it.
    filter: Generation,
    /// The newest generation given to a request.
    generation: Generation,
    /// The server that is listened to first, another one each time.
    next: usize,
    /// While it is not known where the stream begins, and there are several servers.
    start_gate: Option<StartGate>,
    race: Race,
}

/// What a link waits for besides updates.
#[derive(Debug, Clone, Copy)]
struct Needs {
    /// A slot is suspect that it is to deliver again.
    has_suspect: bool,
    /// It is to be asked on a side stream.
    side: bool,
}

impl Drop for SlotStream {
    fn drop(&mut self) {
        for server in self.servers.iter() {
            server.counts.connected(false);
        }
    }
}

impl SlotStream {
    /// Connects and subscribes to every server, and returns once the first one has accepted. `request` must ask for slots and
    /// block metadata at commitment processed. With `from_slot` every slot from it on is given out, or the stream ends;
    /// otherwise the first one that begins under the filter.
    ///
    /// # Errors
    /// As [`Stream::open`], when no server accepts.
    pub async fn open(servers: impl Into<Servers>, request: Request) -> Result<Self, StreamError> {
        Self::open_with(servers, request, limits::SILENCE_TIMEOUT).await
    }

    /// Like [`SlotStream::open`], with this much time without an update of a server ending its stream instead of
    /// [`limits::SILENCE_TIMEOUT`].
    ///
    /// # Errors
    /// As [`SlotStream::open`].
    pub async fn open_with(
        servers: impl Into<Servers>,
        request: Request,
        silence: Duration,
    ) -> Result<Self, StreamError> {
        let servers = servers.into();
        let generation = Generation::default().next();
        wire::validate(&request.in_generation(generation))?;
        let from_slot = request.from_slot;
        let mut stream = Self {
            assembler: SlotAssembler::new(SOURCES_OF_SERVER * servers.len()),
            links: servers
                .iter()
                .map(|server| Link::new(server.endpoint.clone(), silence))
                .collect(),
            request: Request {
                from_slot: None,
                ..request
            },
            filter: generation,
            generation,
            next: 0,
            start_gate: (servers.len() > 1 && from_slot.is_none())
                .then(|| StartGate::new(servers.len())),
            race: Race::default(),
            servers,
        };
        for server in 0..stream.links.len() {
            stream.connect(server, from_slot);
        }
        while !stream.links.iter().any(Link::is_open) {
            stream.step().await?;
        }
        Ok(stream)
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
        for link in &mut self.links {
            link.replace();
        }
        Ok(self.filter)
    }

    /// Gives out banks as they come, too, that will most likely be given out: [`Assembled::Ahead`], from the next one on that is
    /// created, or of which the parent is given out.
    pub const fn give_ahead(&mut self) {
        self.assembler.give_ahead();
    }

    /// The generation in which the consumer has asked for the filter last.
    pub(crate) const fn asked(&self) -> Generation {
        self.filter
    }

    /// Sends what is to be asked for now, as [`SlotStream::next_batch`] does. Cancel-safe.
    pub(crate) async fn ask(&mut self) {
        for server in 0..self.links.len() {
            self.send_due(server).await;
        }
    }

    /// What can be given out next, at least one item. Cancel-safe.
    ///
    /// # Errors
    /// Why the stream is over: the last server is lost, or none of them can deliver a slot again. What was not given out by then
    /// is not known to be whole.
    pub async fn next_batch(&mut self) -> Result<Vec<Assembled>, StreamError> {
        loop {
            self.ask().await;
            for server in 0..self.links.len() {
                self.open_side(server);
            }
            self.check_reach()?;
            self.step().await?;
            let assembled = self.assembler.take();
            if !assembled.is_empty() {
                return Ok(assembled);
            }
        }
    }

    /// Waits for whatever comes first of any server, and takes it in.
    async fn step(&mut self) -> Result<(), StreamError> {
        let needs: Vec<Needs> = (0..self.links.len())
            .map(|server| self.needs(server))
            .collect();
        let links = self.links.iter_mut().zip(needs).enumerate();
        let mut events: Vec<_> = links
            .map(|(server, (link, needs))| {
                Box::pin(async move { (server, link.event(needs).await) })
            })
            .collect();
        if events.is_empty() {
            return Err(StreamError::Connect("there is no server".to_owned()));
        }
        // None that has much to say keeps another one waiting.
        let first = self.next % events.len();
        events.rotate_left(first);
        self.next = first + 1;
        let ((server, event), _, _) = select_all(events).await;
        self.take_in(server, event)
    }

    fn needs(&self, server: usize) -> Needs {
        let (source, at_rest) = (main(server), self.at_rest(server));
        let has_suspect = self.assembler.has_suspect(source);
        let due = has_suspect.then(|| self.assembler.replay_due(source, at_rest));
        let on_side = |path: ReplayPath| path == ReplayPath::SideStream;
        let replays = self.links.get(server).is_some_and(Link::replays);
        Needs {
            has_suspect,
            side: replays && due.flatten().is_some_and(|due| on_side(due.path)),
        }
    }

    fn at_rest(&self, server: usize) -> bool {
        self.links.get(server).is_some_and(|link| link.at_rest)
    }

    fn take_in(&mut self, server: usize, event: Event) -> Result<(), StreamError> {
        let Some(link) = self.links.get_mut(server) else {
            return Ok(());
        };
        match event {
            Event::Updates(part, updates) => {
                link.received(part);
                self.updates(server, part, updates);
            }
            Event::Opened(Ok(stream)) => self.opened(server, stream),
            Event::Opened(Err(error)) | Event::Lost(error) => return self.lost(server, error),
            Event::MayOpen => self.connect_again(server),
            Event::SideOpened(Ok(stream)) => {
                if let Some(sent) = link.side_opened(stream) {
                    self.assembler.connected(side(server), sent);
                }
            }
            Event::SideOpened(Err(error)) | Event::SideLost(error) => {
                tracing::warn!(%error, "side stream lost");
                link.side_lost(&error);
                self.assembler.disconnected(side(server));
            }
            Event::SideMayOpen => {}
            Event::SideBroughtNothing => {
                link.side_brought_nothing();
                self.assembler.disconnected(side(server));
            }
            Event::Rest => link.at_rest = true,
        }
        Ok(())
    }

    fn updates(&mut self, server: usize, part: Part, updates: Vec<Update>) {
        let now = Instant::now();
        let source = match part {
            Part::Main => main(server),
            Part::Side => {
                self.side_updates(server, &updates);
                side(server)
            }
        };
        for update in updates {
            if self.assembler.has_begun() {
                self.start_gate = None;
            }
            if let Some(gate) = &mut self.start_gate {
                let links = &self.links;
                let is_awaited = |other: usize| links.get(other).is_some_and(|l| !l.is_closed());
                if !gate.admits(server, &update, now, is_awaited) {
                    continue;
                }
            }
            if let Body::BlockMeta(block) = &update.body
                && let Some(server) = self.servers.get(server)
            {
                server.counts.completed(block.slot);
            }
            self.assembler.update(source, update);
        }
        for finding in self.assembler.take_findings() {
            self.found(&finding, now);
        }
    }

    /// A replay goes upwards: below the first slot that is to be delivered again, that one may still come.
    fn side_updates(&mut self, server: usize, updates: &[Update]) {
        let awaited = self.assembler.first_suspect(main(server));
        let is_below = |update: &Update| awaited.is_some_and(|awaited| update.slot() <= awaited);
        if updates.iter().any(is_below)
            && let Some(link) = self.links.get_mut(server)
        {
            link.side_goes_on();
        }
    }

    /// Counts what became known of the servers.
    fn found(&mut self, finding: &Finding, now: Instant) {
        let (Finding::Completed { source, .. }
        | Finding::Taken { source, .. }
        | Finding::Contradicted { source, .. }) = finding;
        let number = source / SOURCES_OF_SERVER;
        let Some(server) = self.servers.get(number) else {
            return;
        };
        match finding {
            Finding::Completed { slot, .. } => {
                if let Some(behind) = self.race.completed(number, *slot, now) {
                    server.counts.followed(behind);
                }
            }
            Finding::Taken { .. } => server.counts.taken(),
            Finding::Contradicted {
                slot,
                given,
                claimed,
                ..
            } => {
                if server.counts.contradicted() {
                    tracing::error!(
                        server = server.name,
                        slot,
                        given,
                        claimed,
                        "servers have finalized different blocks; one of them is wrong, or of another cluster"
                    );
                }
            }
        }
    }

    fn opened(&mut self, server: usize, stream: Stream) {
        let sent = self
            .links
            .get_mut(server)
            .and_then(|link| link.opened(stream));
        if let Some(sent) = sent {
            self.assembler.connected(main(server), sent);
        }
        if let Some(server) = self.servers.get(server) {
            server.counts.connected(true);
        }
    }

    /// A server's stream is over, or did not open. The others go on.
    fn lost(&mut self, server: usize, error: StreamError) -> Result<(), StreamError> {
        self.assembler.disconnected(main(server));
        self.assembler.disconnected(side(server));
        let others = self.servers.len() > 1;
        let (Some(link), Some(server)) = (self.links.get_mut(server), self.servers.get(server))
        else {
            return Ok(());
        };
        server.counts.connected(false);
        let is_new = link.lost(error.clone());
        if others && is_new {
            tracing::warn!(server = server.name, %error, "server lost; it is tried again until it is back");
        }
        if !self.links.iter().all(Link::is_closed) {
            return Ok(());
        }
        // The end that something can be done about: to ask for later slots, or for something else.
        let ends = || self.links.iter().filter_map(|link| link.end.as_ref());
        let no_replay = ends().filter(|end| end.is_replay_unavailable());
        let end = no_replay
            .min_by_key(|end| match end {
                StreamError::ReplayUnavailable {
                    first_available: Some(first),
                    ..
                } => *first,
                _ => u64::MAX,
            })
            .or_else(|| ends().find(|end| !end.is_retryable()));
        Err(end.cloned().unwrap_or(error))
    }

    fn connect(&mut self, server: usize, from_slot: Option<u64>) {
        let (sent, request) = self.prepare(from_slot);
        if let Some(link) = self.links.get_mut(server) {
            link.is_replaced = false;
            link.open(sent, request);
        }
    }

    /// Connects to a lost server. While another one is connected nothing is missing that would have to be replayed.
    fn connect_again(&mut self, server: usize) {
        let replays = self.links.get(server).is_some_and(Link::replays);
        let is_alone = !self.links.iter().any(Link::is_open);
        let from_slot = self.assembler.resume_slot();
        self.connect(server, from_slot.filter(|_| is_alone && replays));
    }

    /// Sends the consumer's new filter, or asks for a replay, when the request before has come into force.
    async fn send_due(&mut self, server: usize) {
        let source = main(server);
        let Some(link) = self.links.get(server).filter(|link| link.is_open()) else {
            return;
        };
        if link.outgoing.is_none() && self.assembler.may_request(source) {
            let due = self.assembler.replay_due(source, link.at_rest);
            let from_slot = due
                .filter(|due| due.path == ReplayPath::SameStream && link.replays())
                .map(|due| due.from_slot);
            if link.is_replaced || from_slot.is_some() {
                let outgoing = self.prepare(from_slot);
                if let Some(link) = self.links.get_mut(server) {
                    link.outgoing = Some(outgoing);
                    link.is_replaced = false;
                }
            }
        }
        let Some(link) = self.links.get_mut(server) else {
            return;
        };
        if let (Some((sent, request)), Main::Open(stream)) = (&link.outgoing, &mut link.main) {
            tracing::debug!(generation = %sent.generation, from_slot = sent.from_slot, "subscription replaced");
            if stream.replace(request.clone()).await.is_ok() {
                self.assembler.requested(source, *sent);
            }
            // A stream that is over says why when it is read.
            link.outgoing = None;
        }
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
    fn open_side(&mut self, server: usize) {
        if !self.assembler.has_suspect(main(server)) {
            if let Some(link) = self.links.get_mut(server) {
                let was_open = matches!(link.side, Side::Open(..));
                link.side_is_done();
                if was_open {
                    self.assembler.disconnected(side(server));
                }
            }
            return;
        }
        let Some(link) = self.links.get(server).filter(|link| link.replays()) else {
            return;
        };
        let due = self.assembler.replay_due(main(server), link.at_rest);
        let Some(due) = due.filter(|due| due.path == ReplayPath::SideStream) else {
            return;
        };
        match &link.side {
            Side::Closed(from) if *from <= Instant::now() => {
                let from_slot = due.from_slot;
                tracing::info!(from_slot, "asking for slots on a side stream");
                let (sent, request) = self.prepare(Some(from_slot));
                if let Some(link) = self.links.get_mut(server) {
                    link.open_side(sent, request);
                }
            }
            // It has begun with a slot that is open there too: another one may not.
            Side::Open(..) if self.assembler.replay_due(side(server), false).is_some() => {
                if let Some(link) = self.links.get_mut(server) {
                    link.side_brought_nothing();
                    self.assembler.disconnected(side(server));
                }
            }
            Side::Closed(_) | Side::Opening(..) | Side::Open(..) => {}
        }
    }

    /// Ends the stream when every server that is connected lacks a slot, and none of them delivers it again.
    fn check_reach(&self) -> Result<(), StreamError> {
        let mut open = self.links.iter().enumerate();
        let mut opening = self.links.iter();
        let lacks = |(server, link): (usize, &Link)| {
            !link.is_open() || (link.is_exhausted() && self.assembler.has_suspect(main(server)))
        };
        if !self.links.iter().any(Link::is_open)
            || opening.any(|link| matches!(link.main, Main::Opening(..)))
            || !open.all(lacks)
        {
            return Ok(());
        }
        let links = 0..self.links.len();
        let missing = links.filter_map(|server| self.assembler.first_suspect(main(server)));
        match missing.min() {
            Some(slot) => Err(StreamError::NotReplayed { slot }),
            None => Ok(()),
        }
    }
}

/// The number of a server's stream as a source of the assembler.
const fn main(server: usize) -> usize {
    SOURCES_OF_SERVER * server
}

/// The number of its side stream.
const fn side(server: usize) -> usize {
    SOURCES_OF_SERVER * server + 1
}
