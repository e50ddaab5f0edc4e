//! The chain as the judge: what its blocks say that webhooks must be told, read as they become final.
//!
//! It reads while the run goes on: the validator keeps few minutes of its ledger.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use cpmm::POOL_STATE_LEN;
use serde_json::{Value, json};
use sluice_localnet::{Localnet, chain::Chain};
use solana_commitment_config::CommitmentConfig;
use solana_pubkey::Pubkey;
use solana_rpc_client_api::request::RpcRequest;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use super::facts::{Fact, What};

/// How long the chain may take to finalize what it executed: 32 slots, and room for a busy machine.
const FINALITY_PATIENCE: Duration = Duration::from_secs(120);

/// How long a final block may not be found: the validator writes what its transactions did a moment after it.
const BLOCK_PATIENCE: Duration = Duration::from_secs(30);

/// Pause between two looks: some slots, so that the validator is hardly bothered.
const POLL: Duration = Duration::from_secs(1);

/// Pause before a block is asked for again.
const AGAIN: Duration = Duration::from_millis(250);

/// Most accounts that a node shows at a time.
const ACCOUNTS: usize = 100;

/// What the webhooks watch.
#[derive(Clone, Debug)]
pub(super) struct Watching {
    /// The account that transfers go to.
    pub(super) account: Pubkey,
    /// A pool with its vaults.
    pub(super) pool: [Pubkey; 3],
    /// With its accounts, its events and all transactions that execute it.
    pub(super) program: Pubkey,
}

impl Watching {
    /// All that is watched by address.
    pub(super) fn accounts(&self) -> impl Iterator<Item = Pubkey> + use<> {
        [self.account].into_iter().chain(self.pool)
    }
}

/// How much there is of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kinds {
    /// Transactions that do not execute the program.
    pub(super) transfers: usize,
    /// Transactions that do, and succeeded.
    pub(super) swaps: usize,
    pub(super) events: usize,
    pub(super) changes: usize,
}

impl Kinds {
    /// Whether there is something of each.
    pub(super) const fn has_all(self) -> bool {
        self.transfers > 0 && self.swaps > 0 && self.events > 0 && self.changes > 0
    }
}

/// What the chain did.
pub(super) struct Landed {
    /// What must be told.
    pub(super) facts: HashSet<Fact>,
    /// What may be told, too: a transaction may write an account and leave it as it was, which a validator reports or does not,
    /// and blocks do not say which of the two it was. So are the exchange's observations, which change once a second.
    pub(super) possible: HashSet<Fact>,
    pub(super) kinds: Kinds,
    /// The last slot that was read. What landed later is not judged.
    pub(super) last: u64,
}

/// An account's last write in a block.
struct Write {
    writer: String,
    lamports: u64,
    tokens: Option<u64>,
    /// Whether its balance changed.
    is_seen: bool,
}

/// What an account is to the webhooks, by its owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A pool of the exchange, which each swap changes.
    Pool,
    /// Another account of the exchange.
    OfProgram,
    Other,
}

/// What reads the blocks.
struct Ledger {
    chain: Chain,
    watched: HashSet<String>,
    program: String,
    /// What accounts are, by their addresses.
    roles: HashMap<String, Role>,
    /// The first slot that is not read yet.
    next: u64,
    landed: Landed,
}

/// Reads from the newest slot on, to the one that is the newest once all is `sent`.
///
/// # Errors
/// When the node does not answer.
pub(super) async fn follow(
    net: &Localnet,
    watching: &Watching,
    sent: CancellationToken,
) -> anyhow::Result<JoinHandle<anyhow::Result<Landed>>> {
    let chain = net.chain();
    let ledger = Ledger {
        next: chain.rpc().get_slot().await?,
        chain,
        watched: watching.accounts().map(|key| key.to_string()).collect(),
        program: watching.program.to_string(),
        roles: HashMap::new(),
        landed: Landed {
            facts: HashSet::new(),
            possible: HashSet::new(),
            kinds: Kinds::default(),
            last: 0,
        },
    };
    Ok(tokio::spawn(ledger.run(sent)))
}

impl Ledger {
    async fn run(mut self, sent: CancellationToken) -> anyhow::Result<Landed> {
        while !sent.is_cancelled() {
            self.read(u64::MAX).await?;
            tokio::select! {
                () = sent.cancelled() => {}
                () = sleep(POLL) => {}
            }
        }
        let newest = CommitmentConfig::processed();
        let last = self.chain.rpc().get_slot_with_commitment(newest).await?;
        let begun = Instant::now();
        while self.next <= last {
            ensure!(
                begun.elapsed() < FINALITY_PATIENCE,
                "slot {last} is not finalized"
            );
            self.read(last).await?;
            sleep(AGAIN).await;
        }
        self.landed.last = last;
        Ok(self.landed)
    }

    /// Reads what is final, as far as `last`.
    async fn read(&mut self, last: u64) -> anyhow::Result<()> {
        let finalized = CommitmentConfig::finalized();
        let rpc = self.chain.rpc();
        let last = rpc.get_slot_with_commitment(finalized).await?.min(last);
        if last < self.next {
            return Ok(());
        }
        let range = (self.next, Some(last));
        let slots = rpc.get_blocks_with_commitment(range.0, range.1, finalized);
        for slot in slots.await? {
            let block = self.block(slot).await?;
            self.take(slot, &block)
                .await
                .with_context(|| format!("block of slot {slot}"))?;
        }
        self.next = last + 1;
        Ok(())
    }

    async fn block(&self, slot: u64) -> anyhow::Result<Value> {
        let config = json!({
            "encoding": "jsonParsed",
            "transactionDetails": "full",
            "commitment": "finalized",
            "maxSupportedTransactionVersion": 1,
            "rewards": false,
        });
        let begun = Instant::now();
        loop {
            let params = json!([slot, config]);
            match self.chain.rpc().send(RpcRequest::GetBlock, params).await {
                Ok(block) => return Ok(block),
                Err(error) => ensure!(begun.elapsed() < BLOCK_PATIENCE, "slot {slot}: {error}"),
            }
            sleep(AGAIN).await;
        }
    }

    async fn take(&mut self, slot: u64, block: &Value) -> anyhow::Result<()> {
        let mut writes: Vec<(String, Write)> = Vec::new();
        for executed in array(block, "/transactions")? {
            self.executed(slot, executed)?;
            // One that failed writes nothing but who pays for it.
            if has_succeeded(executed) {
                writes.extend(written(executed)?);
            }
        }
        let accounts = writes.iter().map(|(account, _)| account.clone());
        self.learn_roles(accounts.collect()).await?;
        let mut last: HashMap<String, What> = HashMap::new();
        for (account, write) in writes {
            let role = self.roles.get(&account).copied().unwrap_or(Role::Other);
            if role == Role::Other && !self.watched.contains(&account) {
                continue;
            }
            if role == Role::Pool || write.is_seen {
                last.insert(account.clone(), change(account, write));
            } else {
                let what = change(account, write);
                self.landed.possible.insert(Fact { slot, what });
            }
        }
        for what in last.into_values() {
            self.landed.kinds.changes += 1;
            self.add(slot, what);
        }
        Ok(())
    }

    /// What is told of a transaction, and of the program's events in it.
    fn executed(&mut self, slot: u64, executed: &Value) -> anyhow::Result<()> {
        let signature = executed.pointer("/transaction/signatures/0");
        let signature = signature.and_then(Value::as_str).context("no signature")?;
        let events = events(executed, &self.program)?;
        let mut mentioned = array(executed, KEYS)?.iter().filter_map(pubkey);
        let is_mentioned = mentioned.any(|key| self.watched.contains(key));
        match &events {
            Some(events) if has_succeeded(executed) => {
                ensure!(
                    !events.is_empty(),
                    "swap {signature} without an event of the exchange: {executed}"
                );
                self.landed.kinds.swaps += 1;
            }
            None if is_mentioned => self.landed.kinds.transfers += 1,
            Some(_) => {}
            None => return Ok(()),
        }
        let signature = signature.to_owned();
        for data in events.unwrap_or_default() {
            self.landed.kinds.events += 1;
            let signature = signature.clone();
            self.add(slot, What::ProgramEvent { signature, data });
        }
        self.add(slot, What::Transaction { signature });
        Ok(())
    }

    fn add(&mut self, slot: u64, what: What) {
        self.landed.facts.insert(Fact { slot, what });
    }

    /// Asks what accounts are that are not known yet.
    async fn learn_roles(&mut self, accounts: HashSet<String>) -> anyhow::Result<()> {
        let unknown = accounts.into_iter();
        let unknown = unknown.filter(|account| !self.roles.contains_key(account));
        let unknown: Vec<String> = unknown.collect();
        for unknown in unknown.chunks(ACCOUNTS) {
            let keys: Result<Vec<Pubkey>, _> = unknown.iter().map(|key| key.parse()).collect();
            let found = self.chain.rpc().get_multiple_accounts(&keys?).await?;
            for (account, found) in unknown.iter().zip(found) {
                let owned = found.filter(|found| found.owner.to_string() == self.program);
                let role = owned.map_or(Role::Other, |owned| {
                    let is_pool = owned.data.len() == POOL_STATE_LEN;
                    if is_pool { Role::Pool } else { Role::OfProgram }
                });
                self.roles.insert(account.clone(), role);
            }
        }
        Ok(())
    }
}

/// Where a transaction has its keys, those of lookup tables at the end.
const KEYS: &str = "/transaction/message/accountKeys";

fn array<'a>(of: &'a Value, pointer: &str) -> anyhow::Result<&'a Vec<Value>> {
    let found = of.pointer(pointer).and_then(Value::as_array);
    found.with_context(|| format!("no {pointer}"))
}

fn pubkey(key: &Value) -> Option<&str> {
    key.get("pubkey").and_then(Value::as_str)
}

/// The accounts that a transaction which succeeded may have written, as it left them.
fn written(executed: &Value) -> anyhow::Result<Vec<(String, Write)>> {
    let signature = executed.pointer("/transaction/signatures/0");
    let writer = signature.and_then(Value::as_str).context("no signature")?;
    let before = array(executed, "/meta/preBalances")?;
    let after = array(executed, "/meta/postBalances")?;
    let tokens_before = array(executed, "/meta/preTokenBalances")?;
    let tokens_after = array(executed, "/meta/postTokenBalances")?;
    let keys = array(executed, KEYS)?.iter().enumerate();
    let writable = keys.filter(|(_, key)| key.get("writable") == Some(&Value::Bool(true)));
    let writes = writable.map(|(place, key)| {
        let lamports = after.get(place).and_then(Value::as_u64);
        let lamports = lamports.context("no lamports")?;
        let tokens = tokens_at(tokens_after, place);
        let was = before.get(place).and_then(Value::as_u64);
        let write = Write {
            writer: writer.to_owned(),
            lamports,
            tokens,
            is_seen: was != Some(lamports) || tokens_at(tokens_before, place) != tokens,
        };
        Ok((pubkey(key).context("no key")?.to_owned(), write))
    });
    writes.collect()
}

/// What the token account at a place among the keys holds.
fn tokens_at(balances: &[Value], place: usize) -> Option<u64> {
    let index = Some(place as u64);
    let mut balances = balances.iter();
    let found = balances.find(|of| of.get("accountIndex").and_then(Value::as_u64) == index)?;
    let amount = found.pointer("/uiTokenAmount/amount")?;
    amount.as_str()?.parse().ok()
}

fn change(account: String, write: Write) -> What {
    What::AccountChange {
        account,
        writer: Some(write.writer),
        lamports: write.lamports,
        tokens: write.tokens,
    }
}

fn has_succeeded(executed: &Value) -> bool {
    executed.pointer("/meta/err").is_some_and(Value::is_null)
}

/// The events of a program in a transaction, each in base 64; `None` where it was not executed. One that failed has none, though its
/// log may: a swap is logged before its tokens move, and where they cannot the chain undoes all of it.
fn events(executed: &Value, program: &str) -> anyhow::Result<Option<Vec<String>>> {
    let logs = array(executed, "/meta/logMessages")?;
    let logs: Vec<&str> = logs.iter().filter_map(Value::as_str).collect();
    let logged = of_program(&logs, program);
    Ok(logged.map(|logged| {
        if has_succeeded(executed) {
            logged
        } else {
            Vec::new()
        }
    }))
}

/// The events that a program has logged, each in base 64; `None` where it was not executed.
fn of_program(logs: &[&str], program: &str) -> Option<Vec<String>> {
    let mut executing: Vec<&str> = Vec::new();
    let mut events: Option<Vec<String>> = None;
    for line in logs {
        let Some((subject, rest)) = line
            .strip_prefix("Program ")
            .and_then(|line| line.split_once(' '))
        else {
            continue;
        };
        match subject {
            "data:" if executing.last() == Some(&program) => {
                events.get_or_insert_default().push(rest.to_owned());
            }
            "log:" | "data:" | "return:" => {}
            _ if rest.starts_with("invoke [") => {
                executing.push(subject);
                if subject == program {
                    events.get_or_insert_default();
                }
            }
            _ if rest == "success" || rest.starts_with("failed") => {
                executing.pop();
            }
            _ => {}
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_failed_has_no_events() {
        let executed = |err: Value| {
            let logs = ["Program Exchange invoke [1]", "Program data: c3dhcA=="];
            json!({ "meta": { "err": err, "logMessages": logs } })
        };
        let events = |err| events(&executed(err), "Exchange").expect("it has a log");
        assert_eq!(events(Value::Null), Some(vec!["c3dhcA==".to_owned()]));
        assert_eq!(
            events(json!({ "InstructionError": [0, "Custom"] })),
            Some(Vec::new())
        );
    }

    #[test]
    fn events_are_those_of_the_program_alone() {
        let logs = [
            "Program Guard invoke [1]",
            "Program Exchange invoke [2]",
            "Program log: Program Guard invoke [9]",
            "Program Token invoke [3]",
            "Program data: dG9rZW4=",
            "Program Token success",
            "Program data: c3dhcA==",
            "Program Exchange consumed 9 of 10 compute units",
            "Program Exchange success",
            "Program data: Z3VhcmQ=",
            "Program Guard success",
        ];
        assert_eq!(
            of_program(&logs, "Exchange"),
            Some(vec!["c3dhcA==".to_owned()])
        );
        assert_eq!(
            of_program(&logs, "Guard"),
            Some(vec!["Z3VhcmQ=".to_owned()])
        );
        assert_eq!(of_program(&logs, "Memo"), None);
    }

    #[test]
    fn what_is_written_is_as_the_transaction_left_it() {
        let executed = json!({
            "transaction": {
                "signatures": ["s"],
                "message": { "accountKeys": [
                    { "pubkey": "payer", "writable": true },
                    { "pubkey": "program", "writable": false },
                    { "pubkey": "vault", "writable": true },
                    { "pubkey": "observation", "writable": true },
                ] },
            },
            "meta": {
                "preBalances": [6, 1, 7, 8],
                "postBalances": [5, 1, 7, 8],
                "preTokenBalances": [
                    { "accountIndex": 2, "uiTokenAmount": { "amount": "1" } },
                ],
                "postTokenBalances": [
                    { "accountIndex": 2, "uiTokenAmount": { "amount": "18446744073709551615" } },
                ],
            },
        });
        let writes = written(&executed).expect("complete");
        let writes: Vec<_> = writes
            .iter()
            .map(|(account, write)| {
                (
                    account.as_str(),
                    write.lamports,
                    write.tokens,
                    write.is_seen,
                )
            })
            .collect();
        assert_eq!(
            writes,
            [
                ("payer", 5, None, true),
                ("vault", 7, Some(u64::MAX), true),
                ("observation", 8, None, false),
            ]
        );
    }
}
