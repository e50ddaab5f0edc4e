//! Interactive localnet: runs until it is interrupted.

use std::time::Duration;

use solana_signer::Signer;

use crate::{
    artifacts::Artifacts,
    net::{Localnet, NetOptions},
    rest::{QuoteRequest, swap_body},
    scene::{Scene, Token},
};

/// Pause between two looks at the children.
const WATCH: Duration = Duration::from_millis(250);

/// Priority fee in the lines that are printed.
const PRIORITY_FEE_LAMPORTS: u64 = 10_000;

/// Boots, prints what can be pasted, and stays until `ended` completes.
///
/// # Errors
/// When the boot fails, a child dies, or something is left after the stop.
pub async fn run(
    artifacts: &Artifacts,
    options: &NetOptions,
    ended: impl Future<Output = &'static str>,
) -> anyhow::Result<()> {
    tokio::pin!(ended);
    println!("Starting a validator, then Sluice in front of it; about 10 s");
    let mut net = tokio::select! {
        net = Localnet::start(artifacts, options) => net?,
        // The half-started net is dropped with its future, which ends its processes.
        reason = &mut ended => anyhow::bail!("{reason} during the start"),
    };
    let outcome = tokio::select! {
        reason = &mut ended => {
            println!("{reason}: stopping");
            Ok(())
        }
        failure = stay(&mut net) => Err(failure),
    };
    if let Err(failure) = &outcome {
        eprintln!("{failure:#}\nstopping what is left");
    }
    let cleared = net.stop().await?;
    println!(
        "stopped in {:.1} s; no process and none of {} ports left",
        cleared.took.as_secs_f64(),
        cleared.ports
    );
    outcome
}

/// Says what there is and then watches the children; returns only when something failed.
async fn stay(net: &mut Localnet) -> anyhow::Error {
    match welcome(net).await {
        Ok(text) => println!("{text}"),
        Err(error) => return error,
    }
    loop {
        if let Err(death) = net.check() {
            return death;
        }
        tokio::time::sleep(WATCH).await;
    }
}

/// What can be pasted, with a real quote in it.
async fn welcome(net: &Localnet) -> anyhow::Result<String> {
    let scene = &net.scene;
    let api = net.sluice().api();
    let request = QuoteRequest {
        input_mint: scene.sol.mint,
        output_mint: scene.usd.mint,
        amount: scene.sol.units(1),
        slippage_bps: 50,
    };
    let quote = net.sluice().quote(&request).await?.quote;
    let body = swap_body(&quote, &scene.wallet.pubkey(), PRIORITY_FEE_LAMPORTS);
    let post =
        |path: &str| format!("curl -s {api}{path} -H 'Content-Type: application/json' -d '{body}'");
    Ok(format!(
        "{}\n\
         # a quote: 1 SOL to USDL\ncurl -s '{api}{}'\n\n\
         # a transaction for such a quote, ready to be signed by the demo wallet\n{}\n\n\
         # the bare instruction\n{}\n\n\
         # a webhook for swaps through the guard; needs something that listens on port 3000\n{}\n\n\
         # health of the API and of the indexer\ncurl -s {api}/health/ready\ncurl -s {}/health/ready\n\n\
         Ctrl-C stops everything.",
        inventory(net),
        request.path(),
        post("/v1/swap/transaction"),
        post("/v1/swap/instruction"),
        webhook_line(api, scene),
        net.sluice().indexer(),
    ))
}

fn webhook_line(api: &str, scene: &Scene) -> String {
    let accounts = scene
        .pools
        .each_ref()
        .map(|pool| format!("\"{}\"", pool.address))
        .join(",");
    format!(
        "curl -s {api}/api/webhooks -H 'Content-Type: application/json' -d \
         '{{\"url\":\"http://127.0.0.1:3000/hook\",\
         \"events\":[\"accountChange\",\"transaction\",\"programEvent\"],\
         \"filters\":{{\"accounts\":[{accounts}],\"programs\":[\"{}\"]}},\"active\":true}}'",
        swap_guard_interface::PROGRAM_ID
    )
}

fn inventory(net: &Localnet) -> String {
    let (scene, startup) = (&net.scene, &net.startup);
    let api = net.sluice().api();
    let token = |token: &Token| {
        let note = if token.has_transfer_fee {
            ", Token-2022 with a 1 % transfer fee"
        } else {
            ""
        };
        format!(
            "  {:<9} {} ({} decimals{note})\n",
            token.symbol, token.mint, token.decimals
        )
    };
    let tokens: String = [scene.sol, scene.usd, scene.alfa, scene.beta, scene.levy]
        .iter()
        .map(token)
        .collect();
    let pools: String = scene
        .pools
        .iter()
        .map(|pool| format!("  {:<9} {}\n", pool.name(), pool.address))
        .collect();
    format!(
        "Console   {api}/console\n\
         Sluice is up. API {api}, JSON-RPC {}, Yellowstone gRPC {}\n\
         guard     {}\n\
         exchange  {}\n\
         plugin    {}\n\
         wallet    {} (key pair in {})\n\
         processes validator {}, Sluice {}\n\
         logs      {}, {}\n\n\
         Tokens\n{tokens}Pools\n{pools}",
        net.validator.rpc_url(),
        net.validator.grpc_url(),
        startup.guard,
        startup.exchange,
        startup.plugin,
        scene.wallet.pubkey(),
        net.dir.wallet().display(),
        net.validator.process.id(),
        net.service.process.id(),
        net.dir.sluice_log().display(),
        net.dir.validator_log().display(),
    )
}
