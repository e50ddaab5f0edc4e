//! Stream against a scripted server that speaks the real protocol.

mod endings;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use sluice_geyser::{
    AccountFilter, AccountUpdate, BlockMeta, Body, Commitment, Endpoint, InnerInstruction,
    Instruction, Request, SlotStatus, SlotUpdate, Stream, StreamError, TokenBalance,
    TransactionFilter, TransactionUpdate, Update, limits,
    scripted::{Connection, ScriptedServer},
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// No step of a script takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("a step of the script hangs")
}

fn key(byte: u8) -> Pubkey {
    Pubkey::from([byte; 32])
}

fn request() -> Request {
    let vaults = AccountFilter {
        owners: vec![key(1)],
        memcmp: vec![(32, key(2).to_bytes().to_vec())],
        token_account_state: true,
        ..AccountFilter::default()
    };
    let pools = AccountFilter {
        owners: vec![key(3)],
        datasize: Some(637),
        ..AccountFilter::default()
    };
    let swaps = TransactionFilter {
        account_include: vec![key(4)],
        account_exclude: vec![key(5)],
        account_required: vec![key(6)],
        votes: Some(false),
        failed: None,
        token_owners: true,
    };
    Request {
        commitment: Commitment::Confirmed,
        accounts: BTreeMap::from([("vaults".into(), vaults), ("pools".into(), pools)]),
        transactions: BTreeMap::from([("swaps".into(), swaps)]),
        slots: Some("slots".into()),
        blocks_meta: Some("blocks".into()),
        from_slot: None,
    }
}

fn account(slot: u64, data: Bytes) -> Update {
    Update {
        filters: vec!["vaults".into()],
        created_at: None,
        bank_id: Some(41),
        body: Body::Account(AccountUpdate {
            slot,
            pubkey: key(7),
            owner: key(1),
            lamports: 8,
            executable: false,
            rent_epoch: u64::MAX,
            data,
            write_version: slot,
            txn_signature: Some(Signature::from([9; 64])),
            is_startup: false,
        }),
    }
}

fn tokens(amount: u64, owner: Option<Pubkey>) -> TokenBalance {
    TokenBalance {
        account_index: 1,
        mint: key(3),
        owner,
        program: owner.map(|_| key(4)),
        amount,
        decimals: 6,
        shown_amount: format!("{}.{:06}", amount / 1_000_000, amount % 1_000_000),
    }
}

fn transaction() -> Update {
    let inner = InnerInstruction {
        program_index: 2,
        accounts: vec![1, 0],
        data: vec![5, 6],
        stack_height: Some(2),
    };
    Update {
        filters: vec!["swaps".into()],
        created_at: Some(std::time::UNIX_EPOCH + Duration::new(1_700_000_000, 5)),
        bank_id: Some(42),
        body: Body::Transaction(Box::new(TransactionUpdate {
            slot: 11,
            index: 3,
            signature: Signature::from([1; 64]),
            is_vote: false,
            error: None,
            account_keys: vec![key(1), key(2), key(3)],
            writable: vec![0, 2],
            instructions: vec![Instruction {
                program_index: 1,
                accounts: vec![0, 2],
                data: vec![7],
            }],
            inner_instructions: vec![(0, vec![inner])],
            log_messages: vec!["Program log: hello".into()],
            logs_missing: false,
            fee: 5_000,
            compute_units: Some(28_472),
            pre_balances: vec![10, 20, 30],
            post_balances: vec![9, 21, 30],
            pre_token_balances: vec![tokens(0, Some(key(2)))],
            post_token_balances: vec![tokens(1_500_000, Some(key(2))), tokens(7, None)],
        })),
    }
}

fn slot(status: SlotStatus, dead_error: Option<&str>) -> Update {
    let slot = SlotUpdate {
        slot: 11,
        parent: Some(9),
        status,
        dead_error: dead_error.map(Into::into),
    };
    Update {
        filters: vec!["slots".into()],
        created_at: None,
        bank_id: None,
        body: Body::Slot(slot),
    }
}

fn block_meta() -> Update {
    Update {
        filters: vec!["blocks".into()],
        created_at: None,
        bank_id: Some(43),
        body: Body::BlockMeta(BlockMeta {
            slot: 11,
            parent_slot: 9,
            blockhash: "hash".into(),
            parent_blockhash: "parent".into(),
            block_time: Some(1_700_000_000),
            block_height: Some(8),
            executed_transaction_count: 4,
        }),
    }
}

async fn opened(request: Request) -> (ScriptedServer, Connection, Stream) {
    let mut server = ScriptedServer::start().await.expect("a loopback port");
    let stream = soon(Stream::open(&server.endpoint(), request))
        .await
        .expect("accepted");
    let connection = soon(server.accept()).await;
    (server, connection, stream)
}

#[tokio::test]
async fn the_whole_request_reaches_the_server() {
    let request = Request {
        from_slot: Some(77),
        ..request()
    };
    let (_server, mut connection, _stream) = opened(request.clone()).await;
    let received = soon(connection.received()).await.expect("the subscription");
    assert_eq!((received.request, received.ping), (request, None));
}

#[tokio::test]
async fn every_kind_of_update_arrives_unchanged_and_in_order() {
    let (_server, connection, mut stream) = opened(request()).await;
    let statuses = [
        SlotStatus::Processed,
        SlotStatus::Confirmed,
        SlotStatus::Finalized,
        SlotStatus::FirstShredReceived,
        SlotStatus::Completed,
        SlotStatus::CreatedBank,
    ];
    let mut script = vec![
        account(11, Bytes::from_static(b"data")),
        transaction(),
        block_meta(),
    ];
    script.extend(statuses.map(|status| slot(status, None)));
    script.push(slot(SlotStatus::Dead, Some("too late")));
    for update in &script {
        soon(connection.send(update.clone()))
            .await
            .expect("the client listens");
    }
    for update in script {
        assert_eq!(soon(stream.next()).await, Ok(update));
    }
}

/// Passes one connection on to a server, and counts the bytes that come back.
async fn counted(server: &Endpoint) -> (Endpoint, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let (received, address) = (
        Arc::<AtomicUsize>::default(),
        server.url.authority().to_owned(),
    );
    let counter = Arc::clone(&received);
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.expect("a connection");
        let server = TcpStream::connect(address).await.expect("it listens");
        let ((mut requests, mut answers), (mut from, mut to)) =
            (client.into_split(), server.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut requests, &mut to).await });
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            counter.fetch_add(read, Ordering::SeqCst);
            if answers.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    });
    let endpoint = Endpoint {
        url: url.parse().expect("a URL"),
        x_token: None,
    };
    (endpoint, received)
}

#[tokio::test]
async fn updates_come_compressed_where_the_server_compresses_and_as_they_are_where_it_does_not() {
    const BYTES: usize = 256 * 1024;
    for compresses in [true, false] {
        let server = if compresses {
            ScriptedServer::compressing().await
        } else {
            ScriptedServer::start().await
        };
        let mut server = server.expect("a loopback port");
        let (endpoint, received) = counted(&server.endpoint()).await;
        let mut stream = soon(Stream::open(&endpoint, request()))
            .await
            .expect("accepted");
        let connection = soon(server.accept()).await;
        let update = account(11, Bytes::from(vec![0; BYTES]));
        soon(connection.send(update.clone()))
            .await
            .expect("the client listens");
        assert_eq!(soon(stream.next()).await, Ok(update));
        let received = received.load(Ordering::SeqCst);
        assert_eq!(received < BYTES / 4, compresses, "{received} bytes");
    }
}

#[tokio::test]
async fn a_failed_transaction_carries_a_readable_error() {
    let (_server, connection, mut stream) = opened(request()).await;
    let mut update = transaction();
    let Body::Transaction(failed) = &mut update.body else {
        unreachable!("made above")
    };
    failed.error = Some("any".into());
    soon(connection.send(update))
        .await
        .expect("the client listens");
    let Body::Transaction(arrived) = soon(stream.next()).await.expect("an update").body else {
        panic!("a transaction was sent")
    };
    assert_eq!(arrived.error.as_deref(), Some("Account in use"));
}

#[tokio::test]
async fn a_ping_is_answered_by_a_ping_alone_however_much_is_subscribed_to() {
    let many = AccountFilter {
        pubkeys: vec![key(8); 50_000],
        ..AccountFilter::default()
    };
    let mut first = request();
    first.accounts.insert("many".into(), many);
    first.from_slot = Some(77);
    let (_server, mut connection, mut stream) = opened(first.clone()).await;
    soon(connection.received()).await.expect("the subscription");
    soon(connection.ping()).await.expect("the client listens");
    let answer = soon(connection.received()).await.expect("an answer");
    assert!(answer.ping.is_some());
    assert_eq!(answer.request, Request::default(), "nothing but the ping");

    soon(stream.replace(request())).await.expect("replaced");
    let replaced = soon(connection.received())
        .await
        .expect("the new subscription");
    assert_eq!((replaced.request, replaced.ping), (request(), None));
    soon(connection.ping()).await.expect("the client listens");
    let answer = soon(connection.received()).await.expect("an answer");
    assert!(answer.ping.is_some());
    assert_eq!(answer.request, Request::default());
}

#[tokio::test]
async fn a_slow_consumer_loses_nothing_and_can_still_replace_its_subscription() {
    let (_server, mut connection, mut stream) = opened(request()).await;
    soon(connection.received()).await.expect("the subscription");
    let count = limits::QUEUED_UPDATES as u64 * 3;
    let sender = tokio::spawn(async move {
        for slot in 0..count {
            // A kilobyte each: more than the channel and the socket's windows hold together.
            connection
                .send(account(slot, Bytes::from(vec![0; 1024])))
                .await
                .expect("the client listens");
        }
        connection
    });
    // Time for the channel to fill: whether it did does not change what must hold below.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let second = Request {
        slots: None,
        ..request()
    };
    soon(stream.replace(second.clone()))
        .await
        .expect("replaced although nothing is read");
    for slot in 0..count {
        assert_eq!(
            soon(stream.next()).await,
            Ok(account(slot, Bytes::from(vec![0; 1024])))
        );
    }
    let mut connection = soon(sender).await.expect("the script ran");
    assert_eq!(
        soon(connection.received())
            .await
            .expect("the new subscription")
            .request,
        second
    );
}

#[tokio::test]
async fn a_large_message_within_the_limit_passes() {
    let (_server, connection, mut stream) = opened(request()).await;
    let large = account(1, Bytes::from(vec![7; 24 * 1024 * 1024]));
    soon(connection.send(large.clone()))
        .await
        .expect("the client listens");
    assert_eq!(soon(stream.next()).await, Ok(large));
}

#[tokio::test]
async fn a_filter_that_would_mean_every_account_is_not_sent() {
    let (_server, mut connection, mut stream) = opened(request()).await;
    soon(connection.received()).await.expect("the subscription");
    let mut everything = request();
    everything
        .accounts
        .insert("known".into(), AccountFilter::default());
    let error = soon(stream.replace(everything))
        .await
        .expect_err("too wide");
    assert!(matches!(error, StreamError::Refused(_)), "{error}");
    soon(connection.ping()).await.expect("the client listens");
    let next = soon(connection.received()).await.expect("an answer");
    assert!(
        next.ping.is_some(),
        "nothing was sent between the subscription and the answer to the ping"
    );
}
