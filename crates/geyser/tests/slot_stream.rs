//! Slot stream between two scripted servers that speak the real protocol: cut, slow, behind, refusing.

use std::time::Duration;

use bytes::Bytes;
use sluice_geyser::{
    AccountUpdate, Assembled, BlockMeta, Body, Endpoint, Request, Servers, SlotStatus, SlotStream,
    SlotUpdate, StreamError, Update,
    scripted::{Code, Connection, ScriptedServer},
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep},
};

/// No step of a script takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time without an update that ends a stream: a hundred pings.
const SILENCE: Duration = Duration::from_secs(2);
const PING: Duration = Duration::from_millis(20);

/// The slot with which each script begins.
const FIRST: u64 = 9;

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("a step of the script hangs")
}

/// A server, with its client while there is one.
struct Player {
    server: ScriptedServer,
    client: Option<(Connection, Request)>,
    /// The first write version: servers number writes differently.
    numbers_from: u64,
}

impl Player {
    async fn start(numbers_from: u64) -> Self {
        Self {
            server: ScriptedServer::start().await.expect("a loopback port"),
            client: None,
            numbers_from,
        }
    }

    fn endpoint(&self) -> Endpoint {
        self.server.endpoint()
    }

    /// Waits for the client. Returns what it asks to be replayed from.
    async fn join(&mut self) -> Option<u64> {
        let mut connection = soon(self.server.accept()).await;
        let received = soon(connection.received()).await.expect("a request");
        let from_slot = received.request.from_slot;
        self.client = Some((connection, received.request));
        from_slot
    }

    /// Cuts the stream.
    fn cut(&mut self) {
        self.client = None;
    }

    async fn send(&self, body: Body) {
        let (connection, request) = self.client.as_ref().expect("it has a client");
        let update = Update {
            filters: request.slots.iter().cloned().collect(),
            created_at: None,
            bank_id: None,
            body,
        };
        soon(connection.send(update))
            .await
            .expect("the client listens");
    }

    fn write(&self, slot: u64, key: u8) -> Body {
        Body::Account(AccountUpdate {
            slot,
            pubkey: Pubkey::from([key; 32]),
            owner: Pubkey::default(),
            lamports: 1,
            executable: false,
            rent_epoch: u64::MAX,
            data: Bytes::new(),
            write_version: self.numbers_from + slot,
            txn_signature: Some(Signature::from([key; 64])),
            is_startup: false,
        })
    }

    /// Delivers a slot with a write of each of these accounts.
    async fn whole(&self, slot: u64, keys: &[u8]) {
        self.send(status(slot, SlotStatus::CreatedBank)).await;
        self.rest(slot, keys).await;
    }

    /// Delivers what a client gets of a slot that it joins in the middle.
    async fn rest(&self, slot: u64, keys: &[u8]) {
        for key in keys {
            self.send(self.write(slot, *key)).await;
        }
        let meta = BlockMeta {
            slot,
            parent_slot: slot - 1,
            blockhash: format!("hash{slot}"),
            parent_blockhash: format!("hash{}", slot - 1),
            block_time: None,
            block_height: None,
            executed_transaction_count: 0,
        };
        self.send(Body::BlockMeta(meta)).await;
        self.send(status(slot, SlotStatus::Processed)).await;
    }
}

fn status(slot: u64, status: SlotStatus) -> Body {
    Body::Slot(SlotUpdate {
        slot,
        parent: Some(slot - 1),
        status,
        dead_error: None,
    })
}

/// What a stream gives out, read by a task of its own, as a consumer does.
struct Reading {
    assembled: mpsc::UnboundedReceiver<Result<Assembled, StreamError>>,
    servers: Servers,
}

impl Reading {
    async fn next(&mut self) -> Result<Assembled, StreamError> {
        soon(self.assembled.recv())
            .await
            .expect("the task reads on")
    }

    /// The next slot that is given out, with the first version that its server could have given to its writes.
    async fn next_slot(&mut self) -> (u64, Option<u64>) {
        let mut numbered = None;
        loop {
            let Assembled::Update(update) = self.next().await.expect("the stream goes on") else {
                continue;
            };
            match update.body {
                Body::Account(write) => numbered = Some(write.write_version - write.slot),
                Body::Slot(slot) if slot.status == SlotStatus::Processed => {
                    return (slot.slot, numbered);
                }
                _ => {}
            }
        }
    }
}

const A: u64 = 1_000;
const B: u64 = 2_000;

/// Two servers that have both delivered the first slot, and a stream between them.
async fn between_two() -> (Player, Player, Reading) {
    let (mut a, mut b) = (Player::start(A).await, Player::start(B).await);
    let servers = Servers::new([a.endpoint(), b.endpoint()]);
    let mut reading = read(&servers).await;
    assert_eq!((a.join().await, b.join().await), (None, None));
    a.whole(FIRST, &[1]).await;
    b.whole(FIRST, &[1]).await;
    assert_eq!(reading.next_slot().await.0, FIRST);
    (a, b, reading)
}

fn request(from_slot: Option<u64>) -> Request {
    Request {
        slots: Some("slots".into()),
        blocks_meta: Some("blocks".into()),
        from_slot,
        ..Request::default()
    }
}

async fn read(servers: &Servers) -> Reading {
    let (_busy, is_busy) = watch::channel(false);
    read_while_idle(servers, None, is_busy).await
}

/// A consumer that begins at a slot, and reads nothing while it is busy.
async fn read_while_idle(
    servers: &Servers,
    from_slot: Option<u64>,
    mut is_busy: watch::Receiver<bool>,
) -> Reading {
    let mut stream = soon(SlotStream::open(servers, request(from_slot)))
        .await
        .expect("one of them accepts");
    let (sender, assembled) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let next = tokio::select! {
                Ok(()) = is_busy.changed() => {
                    let _ = is_busy.wait_for(|is_busy| !is_busy).await;
                    continue;
                }
                next = stream.next_batch() => next,
            };
            match next {
                Ok(batch) => {
                    for each in batch {
                        let _ = sender.send(Ok(each));
                    }
                }
                Err(error) => {
                    let _ = sender.send(Err(error));
                    return;
                }
            }
        }
    });
    Reading {
        assembled,
        servers: servers.clone(),
    }
}

#[tokio::test]
async fn of_two_servers_that_are_cut_in_turn_each_slot_comes_once() {
    let (mut a, mut b, mut reading) = between_two().await;
    a.whole(10, &[1, 2]).await;
    assert_eq!(reading.next_slot().await, (10, Some(A)));
    b.whole(10, &[1, 2]).await;
    a.cut();
    b.whole(11, &[1]).await;
    assert_eq!(reading.next_slot().await, (11, Some(B)));
    assert_eq!(
        a.join().await,
        None,
        "nothing is missing that it would have to replay"
    );
    a.whole(12, &[1]).await;
    assert_eq!(reading.next_slot().await, (12, Some(A)));
    b.cut();
    a.whole(13, &[1]).await;
    assert_eq!(reading.next_slot().await, (13, Some(A)));
    assert_eq!(b.join().await, None);
    a.cut();
    b.whole(14, &[1]).await;
    assert_eq!(reading.next_slot().await, (14, Some(B)));
    drop((a, b));
    while reading.next().await.is_ok() {}
}

#[tokio::test]
async fn a_slow_server_is_not_waited_for_and_counts_as_behind() {
    let (a, b, mut reading) = between_two().await;
    for slot in 10..14 {
        a.whole(slot, &[1]).await;
        assert_eq!(reading.next_slot().await, (slot, Some(A)));
    }
    for slot in 10..14 {
        b.whole(slot, &[1]).await;
    }
    b.whole(14, &[1]).await;
    assert_eq!(reading.next_slot().await, (14, Some(B)), "each comes once");
    let standings = reading.servers.standings();
    assert!(standings[0].taken >= 4, "{standings:?}");
    assert!(
        standings[1].followed >= 4 && !standings[1].behind.is_zero(),
        "{standings:?}"
    );
    assert_eq!(standings[1].slot, 14);
}

/// As behind a proxy of which the node is gone: the connection is taken, and nothing is ever said on it.
#[tokio::test]
async fn a_server_that_never_answers_keeps_no_stream_from_opening() {
    for is_first in [true, false] {
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = silent.local_addr().expect("bound");
        let silent = Endpoint {
            url: format!("http://{address}").parse().expect("a URL"),
            x_token: None,
        };
        let mut a = Player::start(A).await;
        let mut endpoints = [silent, a.endpoint()];
        if !is_first {
            endpoints.reverse();
        }
        let mut reading = read(&Servers::new(endpoints)).await;
        a.join().await;
        let deliver = async {
            for slot in FIRST.. {
                a.whole(slot, &[1]).await;
                sleep(Duration::from_millis(50)).await;
            }
        };
        let (_, by) = tokio::select! {
            slot = reading.next_slot() => slot,
            () = deliver => unreachable!("there are always more slots"),
        };
        assert_eq!(by, Some(A));
        let connected = reading.servers.standings().into_iter();
        let connected: Vec<bool> = connected.map(|server| server.is_connected).collect();
        assert_eq!(connected, [!is_first, is_first]);
    }
}

#[tokio::test]
async fn a_server_that_refuses_the_filter_is_tried_again_until_it_accepts() {
    let (a, mut b, mut reading) = between_two().await;
    let (connection, _) = b.client.take().expect("it has a client");
    for _ in 0..2 {
        b.server
            .refuse_next(Code::InvalidArgument, "Max amount of accounts reached");
    }
    let text = "failed to create filter: Max amount of accounts reached";
    soon(connection.fail(Code::InvalidArgument, text))
        .await
        .expect("the client listens");
    a.whole(10, &[1]).await;
    assert_eq!(
        reading.next_slot().await,
        (10, Some(A)),
        "the other goes on"
    );
    b.join().await;
    b.whole(11, &[1]).await;
    assert_eq!(reading.next_slot().await, (11, Some(B)));
    let standings = reading.servers.standings();
    assert!(standings.iter().all(|server| server.is_connected));
}

#[tokio::test]
async fn what_a_server_had_still_to_deliver_when_it_was_cut_comes_from_the_other() {
    let (mut a, b, mut reading) = between_two().await;
    a.whole(10, &[1]).await;
    assert_eq!(reading.next_slot().await, (10, Some(A)));
    b.whole(10, &[1, 2]).await;
    a.cut();
    loop {
        if let Assembled::Late { slot, update } = reading.next().await.expect("it goes on") {
            assert_eq!((slot, update.body), (10, b.write(10, 2)));
            return;
        }
    }
}

/// Longer than a side stream may be silent.
const BUSY: Duration = Duration::from_millis(2_500);

/// A slot comes again on a side stream while the consumer is busy, and is read when it is not.
async fn what_came_meanwhile_is_read() {
    let mut player = Player::start(A).await;
    let servers = Servers::new([player.endpoint()]);
    let (busy, is_busy) = watch::channel(false);
    let mut reading = read_while_idle(&servers, Some(FIRST), is_busy).await;
    assert_eq!(player.join().await, Some(FIRST));
    player.rest(FIRST, &[1]).await;
    player.whole(10, &[1]).await;
    // It is asked for again, and the server does as if it had not been.
    let (connection, request) = player.client.as_mut().expect("it has a client");
    let again = soon(connection.received()).await.expect("a request");
    assert_eq!(again.request.from_slot, Some(FIRST));
    *request = again.request;
    for slot in 11..16 {
        player.whole(slot, &[1]).await;
    }
    let main = player.client.take();
    assert_eq!(player.join().await, Some(FIRST), "on a side stream");
    // For the consumer to notice that the side stream is open.
    sleep(Duration::from_millis(500)).await;
    busy.send_replace(true);
    sleep(BUSY).await;
    player.whole(FIRST, &[1]).await;
    player.whole(10, &[1]).await;
    sleep(Duration::from_millis(100)).await;
    busy.send_replace(false);
    assert_eq!(reading.next_slot().await, (FIRST, Some(A)));
    assert_eq!(reading.next_slot().await, (10, Some(A)));
    drop(main);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_consumer_reads_what_came_before_it_gives_a_side_stream_up() {
    // A consumer that took whichever it saw first would be right now and then.
    let mut trials = JoinSet::new();
    for _ in 0..8 {
        trials.spawn(what_came_meanwhile_is_read());
    }
    trials.join_all().await;
}

#[tokio::test]
async fn a_server_that_pings_and_says_nothing_of_the_chain_is_lost() {
    let mut server = Player::start(A).await;
    let endpoint = server.endpoint();
    let opening = SlotStream::open_with(&endpoint, request(Some(FIRST)), SILENCE);
    let (stream, from_slot) = tokio::join!(soon(opening), server.join());
    let mut stream = stream.expect("it accepts");
    assert_eq!(from_slot, Some(FIRST));
    let reading = tokio::spawn(async move {
        let begun = Instant::now();
        loop {
            if let Err(end) = soon(stream.next_batch()).await {
                return (end, begun.elapsed());
            }
        }
    });
    // Of a slot without an end nothing is given out, but the server is there.
    for key in 0..10 {
        server.send(server.write(FIRST, key)).await;
        sleep(SILENCE / 8).await;
    }
    assert!(!reading.is_finished(), "it says something");
    while !reading.is_finished() {
        let (connection, _) = server.client.as_ref().expect("it has a client");
        // The client goes once it has waited for long enough.
        let _ = connection.ping().await;
        sleep(PING).await;
    }
    let (end, after) = reading.await.expect("does not panic");
    assert_eq!(end, StreamError::Silent(SILENCE));
    assert!(after >= SILENCE * 2, "{after:?}");
}
