//! `sluice lookup-table`: makes the lookup table that transactions of version 0 use, or adds to one.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use sluice_config::Config;
use sluice_transaction::{
    ExchangeIds, LookupTable,
    costs::BASE_FEE,
    lookup_table::{
        LOOKUP_TABLE_MAX_ADDRESSES, LOOKUP_TABLE_META_SIZE, creation, extensions, fixed_addresses,
    },
};
use solana_commitment_config::CommitmentConfig;
use solana_instruction::Instruction;
use solana_keypair::{Keypair, read_keypair_file};
use solana_message::{VersionedMessage, v0};
use solana_pubkey::Pubkey;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use crate::{
    config_file::FileArguments,
    node::{self, without_url},
};

/// What to do with lookup tables.
#[derive(Subcommand)]
pub enum Command {
    /// Makes a table of what every swap names and prints its address, for `chain.lookup-table`; says what it cost.
    #[command(
        after_help = "Examples:\n  sluice lookup-table create --keypair payer.json --config sluice.toml"
    )]
    Create(CreateArguments),
}

/// Arguments of `create`.
#[derive(Args)]
pub struct CreateArguments {
    /// Key pair file, as `solana-keygen` writes it, of the wallet that pays, and that alone may extend or close the table.
    #[arg(long, value_name = "FILE")]
    keypair: PathBuf,
    /// Adds what is missing to this table instead of making one.
    #[arg(long, value_name = "TABLE")]
    extend: Option<Pubkey>,
    /// Adds this address as well, such as that of a pool which many swaps use; may be repeated.
    #[arg(long, value_name = "ADDRESS")]
    address: Vec<Pubkey>,
    #[command(flatten)]
    file: FileArguments,
}

/// Runs one of the commands.
///
/// # Errors
/// When the configuration, the key pair or the node cannot be used, or the chain refuses.
pub async fn run(Command::Create(arguments): Command) -> anyhow::Result<()> {
    let config = Config::load(&arguments.file.config)?;
    let chain = Chain::open(&config, &arguments.keypair)?;
    let mut wanted = fixed_addresses(&chain.exchange).to_vec();
    wanted.extend(chain.configurations().await?);
    wanted.extend(arguments.address);
    let (table, first) = match arguments.extend {
        Some(address) => (chain.table(address).await?, None),
        None => {
            let (instruction, address) = creation(chain.wallet.pubkey(), chain.old_slot().await?);
            (LookupTable::new(address, Vec::new()), Some(instruction))
        }
    };
    let missing = table.missing(&wanted);
    let (held, added) = (table.addresses().len(), missing.len());
    let whole = held.saturating_add(added);
    ensure!(
        whole <= LOOKUP_TABLE_MAX_ADDRESSES,
        "a table holds {LOOKUP_TABLE_MAX_ADDRESSES} addresses, and this would be {whole}; name fewer"
    );
    let rent = chain.rent(whole).await?;
    let rent_before = match first {
        Some(_) => 0,
        None => chain.rent(held).await?,
    };
    let sent = chain.send_all(&table.address(), first, &missing).await?;
    let fees = u64::try_from(sent)?.saturating_mul(BASE_FEE);
    let rent = rent.saturating_sub(rent_before);
    // The address alone goes to standard output, so that a script can take it from there.
    eprintln!(
        "{added} addresses added, {whole} in all, in {sent} transactions of at most {BASE_FEE} lamports each"
    );
    eprintln!(
        "cost: {fees} lamports of fees, and {rent} of rent, which comes back when the table is closed"
    );
    eprintln!(
        "set it in the [chain] section of the configuration: lookup-table = \"{}\"",
        table.address()
    );
    println!("{}", table.address());
    Ok(())
}

/// The cluster, and the wallet that pays.
struct Chain {
    exchange: ExchangeIds,
    rpc: RpcClient,
    wallet: Keypair,
}

impl Chain {
    fn open(config: &Config, keypair: &Path) -> anyhow::Result<Self> {
        let wallet = read_keypair_file(keypair)
            .map_err(|error| anyhow!("cannot read the key pair {}: {error}", keypair.display()))?;
        let rpc = node::client(config);
        let exchange = node::exchange(config)?;
        Ok(Self {
            exchange,
            rpc,
            wallet,
        })
    }

    /// The exchange's fee configurations, of which every pool names one.
    async fn configurations(&self) -> anyhow::Result<Vec<Pubkey>> {
        let found = node::configurations(&self.rpc, &self.exchange).await;
        let mut addresses = found.context("cannot read the exchange's fee configurations")?;
        addresses.sort_unstable();
        Ok(addresses)
    }

    /// The table at this address, which the wallet may extend.
    async fn table(&self, address: Pubkey) -> anyhow::Result<LookupTable> {
        let commitment = CommitmentConfig::confirmed();
        let answer = self.rpc.get_account_with_commitment(&address, commitment);
        let found = answer.await.map_err(without_url)?.value;
        let found = found.as_ref().map(|found| (found.owner, &found.data[..]));
        let table = LookupTable::decode(address, found)
            .with_context(|| format!("lookup table {address} cannot be extended"))?;
        let wallet = self.wallet.pubkey();
        match table.authority {
            Some(authority) if authority == wallet => Ok(table),
            Some(authority) => bail!(
                "lookup table {address} is {authority}'s, and the key pair is {wallet}'s; give the other key pair, or \
                 make a table of your own without --extend"
            ),
            None => {
                bail!("lookup table {address} is frozen for good; make another without --extend")
            }
        }
    }

    /// A slot whose block no fork can replace, from which the table's address follows.
    async fn old_slot(&self) -> anyhow::Result<u64> {
        let finalized = CommitmentConfig::finalized();
        let slot = self.rpc.get_slot_with_commitment(finalized).await;
        slot.map_err(without_url)
    }

    /// Rent of a table of so many addresses, lamports.
    async fn rent(&self, addresses: usize) -> anyhow::Result<u64> {
        let len = addresses
            .saturating_mul(size_of::<Pubkey>())
            .saturating_add(LOOKUP_TABLE_META_SIZE);
        let rent = self.rpc.get_minimum_balance_for_rent_exemption(len).await;
        rent.map_err(without_url)
    }

    /// Makes the table, where `creation` does, and adds the addresses. Returns how many transactions it took.
    async fn send_all(
        &self,
        table: &Pubkey,
        creation: Option<Instruction>,
        missing: &[Pubkey],
    ) -> anyhow::Result<usize> {
        let extensions = extensions(*table, self.wallet.pubkey(), missing);
        let mut pending: Vec<Vec<Instruction>> =
            extensions.into_iter().map(|one| vec![one]).collect();
        if let Some(creation) = creation {
            match pending.first_mut() {
                Some(first) => first.insert(0, creation),
                None => pending.push(vec![creation]),
            }
        }
        for instructions in &pending {
            self.send(instructions).await.with_context(|| {
                format!(
                    "lookup table {table} is not whole; go on with --extend {table} if it exists by now"
                )
            })?;
        }
        Ok(pending.len())
    }

    async fn send(&self, instructions: &[Instruction]) -> anyhow::Result<()> {
        let blockhash = self.rpc.get_latest_blockhash().await.map_err(without_url)?;
        let payer = self.wallet.pubkey();
        let message = v0::Message::try_compile(&payer, instructions, &[], blockhash)?;
        let message = VersionedMessage::V0(message);
        let transaction = VersionedTransaction::try_new(message, &[&self.wallet])?;
        let sent = self.rpc.send_and_confirm_transaction(&transaction).await;
        sent.map(drop).map_err(without_url)
    }
}
