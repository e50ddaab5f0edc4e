//! Interactive localnet: runs until it is interrupted.

use std::{path::PathBuf, time::Duration};

use solana_signer::Signer;

use crate::{
    artifacts::Artifacts,
    net::{Localnet, NetOptions, Startup},
    rest::{Quote, QuoteRequest, swap_body},
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
    let request = first_request(&net.scene);
    let quote = net.sluice().quote(&request).await?.quote;
    let places = Places {
        api: net.sluice().api(),
        indexer: net.sluice().indexer(),
        rpc: net.validator.rpc_url(),
        grpc: net.validator.grpc_url(),
        startup: &net.startup,
        wallet: net.dir.wallet(),
        processes: [net.validator.process.id(), net.service.process.id()],
        logs: [net.dir.sluice_log(), net.dir.validator_log()],
    };
    Ok(announcement(&places, &net.scene, &quote))
}

/// The request of the printed lines.
fn first_request(scene: &Scene) -> QuoteRequest {
    QuoteRequest {
        input_mint: scene.sol.mint,
        output_mint: scene.usd.mint,
        amount: scene.sol.units(1),
        slippage_bps: 50,
    }
}

/// Where the parts of a running localnet are.
struct Places<'a> {
    api: &'a str,
    indexer: &'a str,
    rpc: &'a str,
    grpc: String,
    startup: &'a Startup,
    wallet: PathBuf,
    /// The validator's and Sluice's.
    processes: [i32; 2],
    /// Sluice's and the validator's.
    logs: [PathBuf; 2],
}

/// The whole text (pure). The console stands first: whoever reads one line only has the address at which the rest is shown.
fn announcement(places: &Places<'_>, scene: &Scene, quote: &Quote) -> String {
    let Places { api, indexer, .. } = places;
    let body = swap_body(quote, &scene.wallet.pubkey(), PRIORITY_FEE_LAMPORTS);
    let post =
        |path: &str| format!("curl -s {api}{path} -H 'Content-Type: application/json' -d '{body}'");
    format!(
        "{}\n\
         # a quote: 1 SOL to USDL\ncurl -s '{api}{}'\n\n\
         # a transaction for such a quote, ready to be signed by the demo wallet\n{}\n\n\
         # the bare instruction\n{}\n\n\
         # a webhook for swaps through the guard; needs something that listens on port 3000\n{}\n\n\
         # health of the API and of the indexer\ncurl -s {api}/health/ready\ncurl -s {indexer}/health/ready\n\n\
         Ctrl-C stops everything.",
        inventory(places, scene),
        first_request(scene).path(),
        post("/v1/swap/transaction"),
        post("/v1/swap/instruction"),
        webhook_line(api, scene),
    )
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

fn inventory(places: &Places<'_>, scene: &Scene) -> String {
    let Places {
        api,
        rpc,
        grpc,
        startup,
        processes: [validator, sluice],
        logs: [sluice_log, validator_log],
        ..
    } = places;
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
         Sluice is up. API {api}, JSON-RPC {rpc}, Yellowstone gRPC {grpc}\n\
         guard     {}\n\
         exchange  {}\n\
         plugin    {}\n\
         wallet    {} (key pair in {})\n\
         processes validator {validator}, Sluice {sluice}\n\
         logs      {}, {}\n\n\
         Tokens\n{tokens}Pools\n{pools}",
        startup.guard,
        startup.exchange,
        startup.plugin,
        scene.wallet.pubkey(),
        places.wallet.display(),
        sluice_log.display(),
        validator_log.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{artifacts::Fingerprint, validator::Started};

    fn startup() -> Startup {
        let fingerprint = |name: &str| Fingerprint {
            path: name.into(),
            size: 1,
            sha256: "00".to_owned(),
        };
        Startup {
            guard: fingerprint("guard.so"),
            exchange: fingerprint("exchange.so"),
            plugin: fingerprint("plugin.so"),
            chain: Started {
                slot: 1,
                took: Duration::ZERO,
            },
            service: Duration::ZERO,
        }
    }

    fn printed() -> String {
        let (scene, startup) = (Scene::new(), startup());
        let quote = Quote {
            amount_in: 1_000_000_000,
            input_mint: scene.sol.mint.to_string(),
            minimum_out: 149,
            out_amount: 150,
            output_mint: scene.usd.mint.to_string(),
            pool: scene.pools[0].address.to_string(),
            program: "exchange".to_owned(),
        };
        let places = Places {
            api: "http://127.0.0.1:8787",
            indexer: "http://127.0.0.1:8788",
            rpc: "http://127.0.0.1:8899",
            grpc: "http://127.0.0.1:10000".to_owned(),
            startup: &startup,
            wallet: "wallet.json".into(),
            processes: [1, 2],
            logs: ["sluice.log".into(), "validator.log".into()],
        };
        announcement(&places, &scene, &quote)
    }

    #[test]
    fn the_address_of_the_console_stands_first() {
        let text = printed();
        let first = text.lines().next();
        assert_eq!(first, Some("Console   http://127.0.0.1:8787/console"));
    }

    #[test]
    fn each_request_that_is_printed_goes_to_where_its_part_listens() {
        let text = printed();
        let requests: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("curl "))
            .collect();
        let of_the_indexer = "curl -s http://127.0.0.1:8788/health/ready";
        let (indexer, api): (Vec<&str>, Vec<&str>) = requests
            .into_iter()
            .partition(|line| *line == of_the_indexer);
        assert_eq!((indexer.len(), api.len()), (1, 5), "{text}");
        for line in api {
            let address = line.trim_start_matches("curl -s ").trim_start_matches('\'');
            assert!(address.starts_with("http://127.0.0.1:8787/"), "{line}");
        }
        assert!(text.ends_with("Ctrl-C stops everything."), "{text}");
    }
}
