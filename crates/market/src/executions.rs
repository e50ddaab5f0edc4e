//! Executions: what the confirmed chain shows of the exchange as a program, on a side stream of its own.
//!
//! Quotes do not depend on it. So a connection that is lost is opened again without asking for what was missed, and a
//! consumer that is slow holds back this stream alone.

use std::collections::BTreeMap;

use bytes::Bytes;
use cpmm::ExchangeIds;
use service_kit::{Backoff, CancellationToken, OutageLog};
use sluice_chain_types::Commitment;
use sluice_geyser::{
    AccountFilter, Body, Endpoint, Request, Stream, StreamError, TransactionFilter,
    limits::LONGEST_RECONNECT_PAUSE,
};
use tokio::{sync::mpsc, time::sleep};

/// Executions that may wait for their consumer, which reads each in microseconds.
const WAITING: usize = 256;

/// Something that was executed or deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// The stream begins. Of what came before, something may have been missed.
    Connected,
    /// A transaction that names the exchange; those that failed are among them.
    Transaction {
        /// Its logs, in order; the validator may have cut them.
        logs: Vec<String>,
    },
    /// The exchange was deployed: the data of its program data account.
    Deployed(Bytes),
}

/// Follows the executions of `exchange` at these servers, one after the other where one fails, until `shutdown`.
#[must_use]
pub fn follow_executions(
    exchange: ExchangeIds,
    endpoints: Vec<Endpoint>,
    shutdown: CancellationToken,
) -> mpsc::Receiver<Execution> {
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        shutdown
            .run_until_cancelled(follow(&exchange, &endpoints, &sender))
            .await;
    });
    receiver
}

async fn follow(exchange: &ExchangeIds, endpoints: &[Endpoint], sender: &mpsc::Sender<Execution>) {
    let mut backoff = Backoff::up_to(LONGEST_RECONNECT_PAUSE);
    let mut outage = OutageLog::new("stream of executions");
    for endpoint in endpoints.iter().cycle() {
        let end = session(exchange, endpoint, sender, &mut backoff, &mut outage).await;
        if sender.is_closed() {
            return;
        }
        outage.failed("the stream ended", &end);
        sleep(backoff.next_pause(rand::random())).await;
    }
}

async fn session(
    exchange: &ExchangeIds,
    endpoint: &Endpoint,
    sender: &mpsc::Sender<Execution>,
    backoff: &mut Backoff,
    outage: &mut OutageLog,
) -> StreamError {
    let mut stream = match Stream::open(endpoint, request(exchange)).await {
        Ok(stream) => stream,
        Err(error) => return error,
    };
    let mut execution = Some(Execution::Connected);
    loop {
        if let Some(execution) = execution.take()
            && sender.send(execution).await.is_err()
        {
            return StreamError::Closed;
        }
        match stream.next().await {
            Ok(update) => {
                backoff.reset();
                outage.recovered();
                execution = of(update.body, exchange);
            }
            Err(error) => return error,
        }
    }
}

fn of(body: Body, exchange: &ExchangeIds) -> Option<Execution> {
    match body {
        Body::Transaction(transaction) if !transaction.logs_missing => {
            Some(Execution::Transaction {
                logs: transaction.log_messages,
            })
        }
        Body::Account(account) if account.pubkey == exchange.program_data => {
            Some(Execution::Deployed(account.data))
        }
        _ => None,
    }
}

/// At confirmed: what is learned from a slot that leaves the chain would be learned from what never happened.
fn request(exchange: &ExchangeIds) -> Request {
    let transactions = TransactionFilter {
        account_include: vec![exchange.program],
        votes: Some(false),
        ..TransactionFilter::default()
    };
    let program_data = AccountFilter {
        pubkeys: vec![exchange.program_data],
        ..AccountFilter::default()
    };
    Request {
        commitment: Commitment::Confirmed,
        transactions: BTreeMap::from([("exchange".to_owned(), transactions)]),
        accounts: BTreeMap::from([("program-data".to_owned(), program_data)]),
        ..Request::default()
    }
}
