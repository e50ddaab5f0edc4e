//! Example client: subscribes to a server and prints one line per update of a validator.
//!
//! `cargo run --release --example watch -- http://127.0.0.1:10000 [key=value]...` where the keys are
//! `commitment`, `from`, `owner`, `account`, `memcmp` (offset:base58), `slots`, `interslot`, `txs`,
//! `entries`, `blocks` (with all content), `meta`, `seconds`, `stall` (stop reading for that long) and `replace` (after that long, ask for slots only).

use std::{
    collections::HashMap,
    error::Error,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use yellowstone_grpc_proto::geyser::{
    SubscribeRequest, SubscribeRequestFilterAccounts, SubscribeRequestFilterAccountsFilter,
    SubscribeRequestFilterAccountsFilterMemcmp, SubscribeRequestFilterBlocks,
    SubscribeRequestFilterBlocksMeta, SubscribeRequestFilterEntry, SubscribeRequestFilterSlots,
    SubscribeRequestFilterTransactions, geyser_client::GeyserClient,
    subscribe_request_filter_accounts_filter::Filter,
    subscribe_request_filter_accounts_filter_memcmp::Data, subscribe_update::UpdateOneof,
};

/// Answers hold whole accounts and transactions, which exceed the 4 MiB that Tonic allows by default.
const MAX_ANSWER_BYTES: usize = 64 << 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments
        .next()
        .ok_or("the first argument is the endpoint")?;
    let options: HashMap<String, String> = arguments
        .filter_map(|text| {
            text.split_once('=')
                .map(|(key, value)| (key.into(), value.into()))
        })
        .collect();
    let seconds = |key: &str| -> Result<Option<Duration>, Box<dyn Error>> {
        Ok(options
            .get(key)
            .map(|text| text.parse())
            .transpose()?
            .map(Duration::from_secs))
    };
    let (until, stall, replace) = (seconds("seconds")?, seconds("stall")?, seconds("replace")?);

    let mut client = GeyserClient::connect(endpoint)
        .await?
        .max_decoding_message_size(MAX_ANSWER_BYTES);
    let (sender, receiver) = mpsc::channel(4);
    sender.send(request(&options)?).await?;
    let mut updates = client
        .subscribe(ReceiverStream::new(receiver))
        .await?
        .into_inner();
    if let Some(stall) = stall {
        tokio::time::sleep(stall).await;
    }
    let start = Instant::now();
    let mut replaced = false;
    while let Some(update) = updates.message().await? {
        println!("{:?} {}", update.filters, line(update.update_oneof));
        if until.is_some_and(|until| start.elapsed() > until) {
            return Ok(());
        }
        if !replaced && replace.is_some_and(|replace| start.elapsed() > replace) {
            replaced = true;
            println!("-- asking for slots only");
            let only_slots = [("slots".to_owned(), "replaced".to_owned())];
            sender.send(request(&only_slots.into())?).await?;
        }
    }
    Ok(())
}

fn request(options: &HashMap<String, String>) -> Result<SubscribeRequest, Box<dyn Error>> {
    let mut request = SubscribeRequest::default();
    let get = |key: &str| options.get(key);
    if let Some(level) = get("commitment") {
        request.commitment = Some(level.parse()?);
    }
    if let Some(slot) = get("from") {
        request.from_slot = Some(slot.parse()?);
    }
    if ["owner", "account", "memcmp"]
        .iter()
        .any(|key| options.contains_key(*key))
    {
        let mut filter = SubscribeRequestFilterAccounts {
            owner: get("owner").cloned().into_iter().collect(),
            account: get("account").cloned().into_iter().collect(),
            ..SubscribeRequestFilterAccounts::default()
        };
        if let Some(memcmp) = get("memcmp") {
            let (offset, base58) = memcmp.split_once(':').ok_or("memcmp=offset:base58")?;
            let memcmp = SubscribeRequestFilterAccountsFilterMemcmp {
                offset: offset.parse()?,
                data: Some(Data::Base58(base58.to_owned())),
            };
            filter.filters.push(SubscribeRequestFilterAccountsFilter {
                filter: Some(Filter::Memcmp(memcmp)),
            });
        }
        request.accounts.insert("accounts".into(), filter);
    }
    if let Some(name) = get("slots") {
        let filter = SubscribeRequestFilterSlots {
            interslot_updates: Some(options.contains_key("interslot")),
            ..SubscribeRequestFilterSlots::default()
        };
        request.slots.insert(name.clone(), filter);
    }
    if let Some(name) = get("txs") {
        let filter = SubscribeRequestFilterTransactions {
            vote: Some(false),
            ..SubscribeRequestFilterTransactions::default()
        };
        request.transactions.insert(name.clone(), filter);
    }
    if let Some(name) = get("entries") {
        let filter = SubscribeRequestFilterEntry::default();
        request.entry.insert(name.clone(), filter);
    }
    if let Some(name) = get("blocks") {
        let filter = SubscribeRequestFilterBlocks {
            include_accounts: Some(true),
            include_entries: Some(true),
            ..SubscribeRequestFilterBlocks::default()
        };
        request.blocks.insert(name.clone(), filter);
    }
    if let Some(name) = get("meta") {
        let filter = SubscribeRequestFilterBlocksMeta {};
        request.blocks_meta.insert(name.clone(), filter);
    }
    Ok(request)
}

fn line(update: Option<UpdateOneof>) -> String {
    match update {
        Some(UpdateOneof::Account(update)) => {
            let account = update.account.unwrap_or_default();
            format!(
                "account slot {} {} owner {} lamports {} data {} bytes version {} txn {}",
                update.slot,
                bs58::encode(&account.pubkey).into_string(),
                bs58::encode(&account.owner).into_string(),
                account.lamports,
                account.data.len(),
                account.write_version,
                account.txn_signature.is_some(),
            )
        }
        Some(UpdateOneof::Slot(update)) => {
            format!(
                "slot {} parent {:?} {:?}",
                update.slot,
                update.parent,
                update.status()
            )
        }
        Some(UpdateOneof::Transaction(update)) => {
            let info = update.transaction.unwrap_or_default();
            let meta = info.meta.unwrap_or_default();
            let inner: usize = meta
                .inner_instructions
                .iter()
                .map(|i| i.instructions.len())
                .sum();
            format!(
                "transaction slot {} {} index {} failed {} logs {} inner {} token balances {} units {:?}",
                update.slot,
                bs58::encode(&info.signature).into_string(),
                info.index,
                meta.err.is_some(),
                meta.log_messages.len(),
                inner,
                meta.post_token_balances.len(),
                meta.compute_units_consumed,
            )
        }
        Some(UpdateOneof::Entry(update)) => format!(
            "entry slot {} index {} transactions {}",
            update.slot, update.index, update.executed_transaction_count
        ),
        Some(UpdateOneof::Block(update)) => format!(
            "whole block slot {} accounts {} transactions {} entries {}",
            update.slot,
            update.accounts.len(),
            update.transactions.len(),
            update.entries.len()
        ),
        Some(UpdateOneof::BlockMeta(update)) => format!(
            "block slot {} parent {} transactions {} height {:?}",
            update.slot,
            update.parent_slot,
            update.executed_transaction_count,
            update.block_height.map(|height| height.block_height),
        ),
        other => format!("{other:?}"),
    }
}
