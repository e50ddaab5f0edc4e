//! Wallets put into a wanted state on a real chain.

use std::time::{Duration, Instant};

use anyhow::ensure;
use cpmm::{MINT_LEN, TokenProgram, ids};
use sluice_localnet::{
    Localnet,
    chain::Chain,
    opening::Opening,
    rest::{QuoteRequest, SluiceClient},
    scene::Token,
};
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_instruction::{AccountMeta, Instruction};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use solana_system_interface::instruction::{
    create_account_with_seed, create_nonce_account_with_seed, transfer,
};
use spl_associated_token_account_interface::instruction::create_associated_token_account_idempotent;
use spl_token_interface::instruction::sync_native;

use crate::net::TestNet;

/// How long a new pool may take to its first quote.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opening a pool creates seven accounts, which is more than the 200,000 units of one instruction.
const OPENING_UNITS: u32 = 600_000;

/// Length of a nonce account.
const NONCE_LEN: usize = 80;

/// Longest seed of an address.
const SEED_LEN: usize = 32;

/// First bytes of two instructions that both token programs share.
const MINT_TO: u8 = 7;
const INITIALIZE_MINT_2: u8 = 20;

/// A localnet with one more pool: two Token-2022 mints.
pub struct Bench<'a> {
    pub net: &'a Localnet,
    /// A Token-2022 mint without a transfer fee.
    pub twin: Token,
}

impl<'a> Bench<'a> {
    /// Makes the mint and opens the pool.
    pub async fn open(net: &'a TestNet) -> anyhow::Result<Self> {
        let net = &net.net;
        let scene = &net.scene;
        let wallet = scene.wallet.pubkey();
        let seed = "twin";
        let mint = Pubkey::create_with_seed(&wallet, seed, &ids::TOKEN_2022)?;
        let twin = Token {
            symbol: "TWIN",
            mint,
            decimals: 6,
            program: TokenProgram::Token2022,
            has_transfer_fee: false,
        };
        let bench = Self { net, twin };
        let rent = bench
            .chain()
            .rpc()
            .get_minimum_balance_for_rent_exemption(MINT_LEN)
            .await?;
        let space = u64::try_from(MINT_LEN)?;
        let create =
            create_account_with_seed(&wallet, &mint, &wallet, seed, rent, space, &ids::TOKEN_2022);
        bench
            .act(&[create, initialize_mint(&twin, &wallet)])
            .await?;
        for token in [scene.levy, twin] {
            bench
                .act(&[
                    create_account(&wallet, &wallet, &token),
                    mint_to(&token, &wallet, &wallet, token.units(200_000)),
                ])
                .await?;
        }
        let opening = Opening {
            creator: wallet,
            one: (scene.levy, scene.levy.units(100_000)),
            other: (twin, twin.units(100_000)),
            open_time: 0,
        };
        bench
            .act(&[
                ComputeBudgetInstruction::set_compute_unit_limit(OPENING_UNITS),
                opening.instruction(),
            ])
            .await?;
        bench.until_quoted(&scene.levy, &twin).await?;
        Ok(bench)
    }

    pub fn chain(&self) -> Chain {
        self.net.chain()
    }

    pub fn sluice(&self) -> &SluiceClient {
        self.net.sluice()
    }

    async fn until_quoted(&self, from: &Token, to: &Token) -> anyhow::Result<()> {
        let request = QuoteRequest {
            input_mint: from.mint,
            output_mint: to.mint,
            amount: from.units(1),
            slippage_bps: 50,
        };
        let begun = Instant::now();
        while let Err(error) = self.sluice().quote(&request).await {
            ensure!(begun.elapsed() < PATIENCE, "{error:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Instructions that the scene's wallet pays for and signs.
    async fn act(&self, instructions: &[Instruction]) -> anyhow::Result<()> {
        let chain = self.chain();
        let transaction = chain.sign(instructions, &self.net.scene.wallet).await?;
        let done = chain.send_and_confirm(&transaction, true).await?;
        ensure!(done.error.is_none(), "{:?}: {:#?}", done.error, done.logs);
        Ok(())
    }

    /// A new nonce account that this wallet advances.
    pub async fn nonce_account(&self, authority: &Pubkey) -> anyhow::Result<Pubkey> {
        let payer = self.net.scene.wallet.pubkey();
        let seed = &authority.to_string()[..SEED_LEN];
        let account =
            Pubkey::create_with_seed(&payer, seed, &solana_system_interface::program::ID)?;
        let rpc = self.chain();
        let rent = rpc.rpc().get_minimum_balance_for_rent_exemption(NONCE_LEN);
        let create =
            create_nonce_account_with_seed(&payer, &account, &payer, seed, authority, rent.await?);
        self.act(&create).await?;
        Ok(account)
    }

    /// A new wallet with these lamports and these token accounts.
    pub async fn wallet(
        &self,
        lamports: u64,
        holdings: &[(Token, u64)],
    ) -> anyhow::Result<Keypair> {
        let wallet = Keypair::new();
        let (payer, user) = (self.net.scene.wallet.pubkey(), wallet.pubkey());
        let mut instructions = vec![transfer(&payer, &user, lamports)];
        for (token, amount) in holdings {
            instructions.push(create_account(&payer, &user, token));
            if token.mint == ids::WRAPPED_SOL {
                let account = token.account_of(&user);
                instructions.push(transfer(&payer, &account, *amount));
                instructions.push(sync_native(&ids::SPL_TOKEN, &account)?);
            } else {
                instructions.push(mint_to(token, &payer, &user, *amount));
            }
        }
        self.act(&instructions).await?;
        Ok(wallet)
    }
}

fn create_account(payer: &Pubkey, owner: &Pubkey, token: &Token) -> Instruction {
    create_associated_token_account_idempotent(payer, owner, &token.mint, &token.program.id())
}

/// The scene's wallet may mint every token but SOL.
fn mint_to(token: &Token, authority: &Pubkey, owner: &Pubkey, amount: u64) -> Instruction {
    let mut data = vec![MINT_TO];
    data.extend_from_slice(&amount.to_le_bytes());
    Instruction {
        program_id: token.program.id(),
        accounts: vec![
            AccountMeta::new(token.mint, false),
            AccountMeta::new(token.account_of(owner), false),
            AccountMeta::new_readonly(*authority, true),
        ],
        data,
    }
}

fn initialize_mint(token: &Token, authority: &Pubkey) -> Instruction {
    let mut data = vec![INITIALIZE_MINT_2, token.decimals];
    data.extend_from_slice(authority.as_ref());
    // No one can freeze accounts.
    data.push(0);
    Instruction {
        program_id: token.program.id(),
        accounts: vec![AccountMeta::new(token.mint, false)],
        data,
    }
}
