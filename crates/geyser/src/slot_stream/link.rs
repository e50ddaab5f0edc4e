//! Link: the connections to one server, its stream and the side stream beside it.

use std::time::Duration;

use futures::future::OptionFuture;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::Needs;
use crate::{
    error::StreamError,
    limits::LONGEST_RECONNECT_PAUSE,
    reconnect,
    request::{Endpoint, Request},
    slot_assembly::SentRequest,
    stream::Stream,
    update::Update,
};

/// Pause before a side stream is opened again. A slot must pass meanwhile, or the next one would show no more than the last.
const SIDE_PAUSE: Duration = Duration::from_secs(1);

/// Time without any update up to what it was opened for, after which a side stream counts as one that brings nothing: several
/// slots.
const SIDE_PATIENCE: Duration = Duration::from_secs(2);

/// Side streams in a row that may bring nothing before the slots count as gone.
const SIDE_ATTEMPTS: u32 = 4;

/// Time without any update after which a replay that was asked for counts as over. It is over as soon as a new slot begins; this
/// is for chains that stand still.
const REST: Duration = Duration::from_millis(200);

/// Pause before a server is connected to again while others are; it doubles with each failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Longest pause before a server that has refused the filter is asked for it again. It will most likely refuse once more, and a
/// request may hold megabytes; what it refuses may depend on its settings or on the other clients of the account.
const LONGEST_REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// Time for which a server that has refused a replay is not asked for another one: about the slots that servers keep.
const REFUSAL: Duration = Duration::from_secs(60);

/// One server.
#[derive(Debug)]
pub(super) struct Link {
    endpoint: Endpoint,
    pub(super) main: Main,
    /// A request on its way: kept until it is sent, should the consumer stop waiting meanwhile.
    pub(super) outgoing: Option<(SentRequest, Request)>,
    /// Whether the consumer's newest request was not sent yet.
    pub(super) is_replaced: bool,
    pub(super) side: Side,
    /// Side streams in a row that brought nothing.
    side_attempts: u32,
    /// Whether nothing has come for a while.
    pub(super) at_rest: bool,
    /// When something came last, or the first slot became suspect since.
    quiet_since: Instant,
    /// When an update came last by the stream, or it was opened since.
    heard_at: Instant,
    /// Time without an update after which the stream counts as dead.
    silence: Duration,
    has_suspect: bool,
    /// Why its stream ended last, or did not open.
    pub(super) end: Option<StreamError>,
    /// Failures since the last update.
    failures: u32,
    /// Those of them with which it refused the filter.
    refusals: u32,
    /// Until when it counts as one that does not replay.
    refuses_until: Option<Instant>,
}

#[derive(Debug)]
pub(super) enum Main {
    /// It may be opened from this moment on.
    Closed(Instant),
    Opening(SentRequest, JoinHandle<Result<Stream, StreamError>>),
    Open(Stream),
}

#[derive(Debug)]
pub(super) enum Side {
    /// It may be opened from this moment on.
    Closed(Instant),
    Opening(SentRequest, JoinHandle<Result<Stream, StreamError>>),
    /// With the time at which it counts as one that brings nothing, unless something comes before.
    Open(Stream, Instant),
}

/// Which of the two connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Main,
    Side,
}

/// What a wait ends with.
#[derive(Debug)]
pub(super) enum Event {
    Updates(Part, Vec<Update>),
    Opened(Result<Stream, StreamError>),
    Lost(StreamError),
    MayOpen,
    SideOpened(Result<Stream, StreamError>),
    SideLost(StreamError),
    SideMayOpen,
    SideBroughtNothing,
    Rest,
}

impl Link {
    pub(super) fn new(endpoint: Endpoint, silence: Duration) -> Self {
        let now = Instant::now();
        Self {
            endpoint,
            main: Main::Closed(now),
            outgoing: None,
            is_replaced: false,
            side: Side::Closed(now),
            side_attempts: 0,
            at_rest: false,
            quiet_since: now,
            heard_at: now,
            silence,
            has_suspect: false,
            end: None,
            failures: 0,
            refusals: 0,
            refuses_until: None,
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.main, Main::Open(_))
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.main, Main::Closed(_))
    }

    /// Whether it may be asked for a replay.
    pub(super) fn replays(&self) -> bool {
        self.refuses_until
            .is_none_or(|until| until <= Instant::now())
    }

    /// Whether it has not brought, however asked, what it is to deliver again.
    pub(super) fn is_exhausted(&self) -> bool {
        !self.replays() || self.side_attempts >= SIDE_ATTEMPTS
    }

    /// Begins to open the stream.
    pub(super) fn open(&mut self, sent: SentRequest, request: Request) {
        self.main = Main::Opening(sent, spawn(self.endpoint.clone(), request));
    }

    /// Begins to open the side stream.
    pub(super) fn open_side(&mut self, sent: SentRequest, request: Request) {
        self.side = Side::Opening(sent, spawn(self.endpoint.clone(), request));
    }

    /// The stream is open. Returns the request that opened it.
    pub(super) fn opened(&mut self, stream: Stream) -> Option<SentRequest> {
        self.quiet_since = Instant::now();
        self.heard_at = self.quiet_since;
        match std::mem::replace(&mut self.main, Main::Open(stream)) {
            Main::Opening(sent, _) => Some(sent),
            Main::Closed(_) | Main::Open(_) => None,
        }
    }

    /// The stream is over, or did not open. The side stream ends with it. Returns whether it was connected since the last time.
    pub(super) fn lost(&mut self, error: StreamError) -> bool {
        let is_new = self.failures == 0;
        let now = Instant::now();
        if error.is_replay_unavailable() {
            self.refuses_until = Some(now + REFUSAL);
        }
        self.main = Main::Closed(now + self.pause(error.is_retryable()));
        self.failures = self.failures.saturating_add(1);
        self.refusals = self
            .refusals
            .saturating_add(u32::from(!error.is_retryable()));
        self.end = Some(error);
        self.outgoing = None;
        self.at_rest = false;
        self.side_attempts = 0;
        self.close_side();
        is_new
    }

    /// The pause after one more failure. A server that was away for long, and refuses once before it is itself again, is no
    /// server that always refuses.
    fn pause(&self, is_retryable: bool) -> Duration {
        if is_retryable {
            reconnect::pause(FIRST_PAUSE, self.failures, LONGEST_RECONNECT_PAUSE)
        } else {
            reconnect::pause(FIRST_PAUSE, self.refusals, LONGEST_REFUSED_PAUSE)
        }
    }

    /// The filter is another one: a server that has refused the last one may accept it.
    pub(super) fn replace(&mut self) {
        self.is_replaced = true;
        let was_refused = self.end.as_ref().is_some_and(|end| !end.is_retryable());
        if was_refused && self.is_closed() {
            self.failures = 0;
            self.refusals = 0;
            self.main = Main::Closed(Instant::now());
        }
    }

    /// Something came by one of the two connections.
    pub(super) fn received(&mut self, part: Part) {
        self.quiet_since = Instant::now();
        if part == Part::Main {
            self.heard_at = self.quiet_since;
        }
        self.at_rest = false;
        self.failures = 0;
        self.refusals = 0;
    }

    /// The side stream is on its way to what it was opened for.
    pub(super) fn side_goes_on(&mut self) {
        if let Side::Open(_, until) = &mut self.side {
            *until = Instant::now() + SIDE_PATIENCE;
        }
    }

    /// The side stream is open. Returns the request that opened it.
    pub(super) fn side_opened(&mut self, stream: Stream) -> Option<SentRequest> {
        let open = Side::Open(stream, Instant::now() + SIDE_PATIENCE);
        match std::mem::replace(&mut self.side, open) {
            Side::Opening(sent, _) => Some(sent),
            Side::Closed(_) | Side::Open(..) => None,
        }
    }

    /// The side stream is over.
    pub(super) fn side_lost(&mut self, error: &StreamError) {
        if error.is_replay_unavailable() {
            self.refuses_until = Some(Instant::now() + REFUSAL);
        }
        self.side_brought_nothing();
    }

    /// The side stream has not brought what it was opened for.
    pub(super) fn side_brought_nothing(&mut self) {
        self.side_attempts = self.side_attempts.saturating_add(1);
        self.close_side();
    }

    /// Nothing is to be delivered again any more.
    pub(super) fn side_is_done(&mut self) {
        self.side_attempts = 0;
        if matches!(self.side, Side::Open(..)) {
            self.close_side();
        }
    }

    fn close_side(&mut self) {
        self.side = Side::Closed(Instant::now() + SIDE_PAUSE);
    }

    /// Waits for whatever comes first. Cancel-safe.
    pub(super) async fn event(&mut self, needs: Needs) -> Event {
        if needs.has_suspect && !self.has_suspect {
            self.quiet_since = Instant::now();
        }
        self.has_suspect = needs.has_suspect;
        let silent_at = self.is_open().then_some(self.heard_at + self.silence);
        let may_rest = (!self.at_rest && needs.has_suspect).then_some(self.quiet_since + REST);
        let (mut opening, mut side, mut pause, mut patience) = (None, None, None, None);
        match &mut self.side {
            Side::Opening(_, task) => opening = Some(task),
            Side::Open(stream, until) => (side, patience) = (Some(stream), Some(*until)),
            Side::Closed(from) if needs.side => pause = Some(*from),
            Side::Closed(_) => {}
        }
        let side = OptionFuture::from(side.map(Stream::next_batch));
        let news = async {
            tokio::select! {
                event = main_event(&mut self.main) => event,
                Some(opened) = OptionFuture::from(opening) => {
                    Event::SideOpened(opened.unwrap_or(Err(StreamError::Closed)))
                }
                Some(updates) = side => match updates {
                    Ok(updates) => Event::Updates(Part::Side, updates.collect()),
                    Err(error) => Event::SideLost(error),
                },
            }
        };
        tokio::select! {
            // What came while the consumer was busy is looked at before the time that it was busy for.
            biased;
            event = news => event,
            Some(()) = OptionFuture::from(pause.map(sleep_until)) => Event::SideMayOpen,
            Some(()) = OptionFuture::from(patience.map(sleep_until)) => Event::SideBroughtNothing,
            Some(()) = OptionFuture::from(may_rest.map(sleep_until)) => Event::Rest,
            Some(()) = OptionFuture::from(silent_at.map(sleep_until)) => {
                Event::Lost(StreamError::Silent(self.silence))
            }
        }
    }
}

async fn main_event(main: &mut Main) -> Event {
    match main {
        Main::Closed(until) => {
            sleep_until(*until).await;
            Event::MayOpen
        }
        Main::Opening(_, task) => Event::Opened(task.await.unwrap_or(Err(StreamError::Closed))),
        Main::Open(stream) => match stream.next_batch().await {
            Ok(updates) => Event::Updates(Part::Main, updates.collect()),
            Err(error) => Event::Lost(error),
        },
    }
}

fn spawn(endpoint: Endpoint, request: Request) -> JoinHandle<Result<Stream, StreamError>> {
    tokio::spawn(async move { Stream::open(&endpoint, request).await })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn link() -> Link {
        let url = "http://127.0.0.1:1".parse().expect("a URL");
        Link::new(Endpoint { url, x_token: None }, limits::SILENCE_TIMEOUT)
    }

    fn unreachable() -> StreamError {
        StreamError::Connect("refused".to_owned())
    }

    fn refusal() -> StreamError {
        StreamError::Refused("no such key".to_owned())
    }

    /// The pause that follows a loss.
    fn pause_after(link: &mut Link, error: StreamError) -> u128 {
        let pause = link.pause(error.is_retryable());
        link.lost(error);
        pause.as_millis()
    }

    #[test]
    fn a_server_that_is_lost_is_tried_every_second_and_one_that_refuses_every_minute() {
        let pauses = |error: fn() -> StreamError| -> Vec<u128> {
            let mut link = link();
            (0..12).map(|_| pause_after(&mut link, error())).collect()
        };
        assert_eq!(pauses(unreachable)[..5], [200, 400, 800, 1_000, 1_000]);
        assert_eq!(pauses(refusal)[..5], [200, 400, 800, 1_600, 3_200]);
        assert_eq!(pauses(refusal)[9..], [60_000, 60_000, 60_000]);
    }

    #[test]
    fn a_server_that_was_away_and_refuses_once_is_tried_again_at_once() {
        let mut link = link();
        for _ in 0..60 {
            pause_after(&mut link, unreachable());
        }
        assert_eq!(pause_after(&mut link, refusal()), 200);
        assert_eq!(pause_after(&mut link, unreachable()), 1_000);
        assert_eq!(pause_after(&mut link, refusal()), 400);
        link.received(Part::Main);
        assert_eq!(pause_after(&mut link, refusal()), 200);
    }
}
