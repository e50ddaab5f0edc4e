//! Check of the guard: that it is deployed, calls the exchange of this cluster, and is what the certificate of its proof names.

use anyhow::Context;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sluice_config::Exchange;
use sluice_transaction::ExchangeIds;
use solana_pubkey::{Pubkey, pubkey};
use swap_guard_interface::PROGRAM_ID;

use super::{chain::ChainChecks, report::Finding};

/// The certificate, with the hash of the bytes that were proved.
const CERTIFICATE: &str = include_str!("../../../../proof.json");

/// Loader of programs that can be upgraded: their bytes are in another account.
const UPGRADEABLE_LOADER: Pubkey = pubkey!("BPFLoaderUpgradeab1e11111111111111111111111");

/// Where the program's account names that other account.
const PROGRAM_DATA_ADDRESS: std::ops::Range<usize> = 4..36;

/// Bytes before the program's file in that other account.
const PROGRAM_DATA_HEADER: usize = 45;

/// Zeros in which the file itself may end: its last record is mostly zeros. What comes behind them is the account's room.
const MOST_OWN_ZEROS: usize = 64;

/// Bytes of a constant in an instruction.
const WORD: usize = 4;

/// What to do when it is not there.
const REMEDY: &str = "deploy it (docs/guard.md); without it no swap that is built can be executed";

/// What to do when its bytes are others.
const OTHER_BYTES_REMEDY: &str = "deploy the guard of this release (docs/guard.md); or prove the deployed bytes (`cargo xtask prove \
     --program FILE`) and build sluice with their certificate as proof.json";

/// Looks at the guard's program, on a chain where this runs at the exchange's address.
pub async fn check(chain: &ChainChecks, exchange: Exchange) -> Finding {
    let file = match file(chain).await {
        Ok(Some(file)) => file,
        Ok(None) => {
            return Finding::broken(
                format!("{PROGRAM_ID} is no program on this cluster"),
                REMEDY,
            );
        }
        Err(error) => return Finding::failed(&error, REMEDY),
    };
    match proved_hash() {
        Ok(proved) => judged(&file, &chain.ids.program, exchange, &proved),
        Err(error) => Finding::failed(&error, "restore proof.json, and build again"),
    }
}

/// What these bytes are for a cluster with the exchange at this address. Where it is the stand-in nothing of value is swapped, and a
/// guard that is being worked on is looked at like any other.
fn judged(file: &[u8], exchange: &Pubkey, runs: Exchange, proved: &[u8]) -> Finding {
    let mainnet = ExchangeIds::MAINNET.program;
    let calls = |exchange: &Pubkey| {
        file.windows(exchange.as_ref().len())
            .any(|at| at == exchange.as_ref())
    };
    if !calls(exchange) {
        let others = [mainnet, ExchangeIds::DEVNET.program];
        let other = others.into_iter().find(|other| calls(other));
        let other = other.map_or("another exchange".to_owned(), |other| other.to_string());
        return Finding::broken(
            format!("{PROGRAM_ID} calls {other}, and not {exchange} (chain.exchange-program)"),
            "deploy the guard that is built for this exchange (docs/guard.md): this one refuses every swap with WrongExchange",
        );
    }
    if has_hash(file, proved) {
        return Finding::Well(format!("{PROGRAM_ID}, the bytes that are proved"));
    }
    if has_hash(&with_exchange(file, exchange, &mainnet), proved) {
        return Finding::Well(format!(
            "{PROGRAM_ID}, the bytes that are proved but for the exchange's address, {exchange}"
        ));
    }
    let found = format!("{PROGRAM_ID} has other bytes than those that are proved");
    match runs {
        Exchange::StandIn => Finding::doubtful(found, OTHER_BYTES_REMEDY),
        Exchange::Raydium => Finding::broken(
            format!("{found}: nothing is known of what it lets through"),
            OTHER_BYTES_REMEDY,
        ),
    }
}

/// These bytes with another exchange: it stands in them whole, and as constants of instructions, of which each holds one word.
fn with_exchange(file: &[u8], from: &Pubkey, to: &Pubkey) -> Vec<u8> {
    let words = |address: &Pubkey| address.to_bytes().as_chunks::<WORD>().0.to_vec();
    let (from, to) = (words(from), words(to));
    let mut file = file.to_vec();
    let (in_file, _) = file.as_chunks_mut::<WORD>();
    for word in in_file {
        let same = from.iter().zip(&to).find(|(from, _)| *from == word);
        *word = same.map_or(*word, |(_, to)| *to);
    }
    file
}

/// The program's file, with the room behind it; `None` when there is no program.
async fn file(chain: &ChainChecks) -> anyhow::Result<Option<Vec<u8>>> {
    let Some(program) = chain.account(&PROGRAM_ID).await? else {
        return Ok(None);
    };
    if !program.executable {
        return Ok(None);
    }
    if program.owner != UPGRADEABLE_LOADER {
        return Ok(Some(program.data));
    }
    let address = program.data.get(PROGRAM_DATA_ADDRESS);
    let address = address.and_then(|bytes| Pubkey::try_from(bytes).ok());
    let address = address.context("the guard's account names no program data")?;
    let data = chain.account(&address).await?;
    Ok(data.and_then(|data| data.data.get(PROGRAM_DATA_HEADER..).map(<[u8]>::to_vec)))
}

fn proved_hash() -> anyhow::Result<Vec<u8>> {
    let certificate: Value = serde_json::from_str(CERTIFICATE)?;
    let hash = certificate["program"]["sha256"].as_str();
    let hash = hash.context("the certificate names no program")?;
    Ok(hex::decode(hash)?)
}

/// Whether these bytes are a file of this SHA-256 and zeros behind it.
fn has_hash(bytes: &[u8], hash: &[u8]) -> bool {
    let content = bytes.iter().rposition(|&byte| byte != 0);
    let shortest = content.map_or(0, |last| last.saturating_add(1));
    let longest = shortest.saturating_add(MOST_OWN_ZEROS).min(bytes.len());
    (shortest..=longest)
        .filter_map(|len| bytes.get(..len))
        .any(|file| Sha256::digest(file)[..] == *hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_behind_a_file_is_no_part_of_it_and_its_own_zeros_are() {
        let file = [1, 2, 0, 3, 0, 0, 0];
        let hash = Sha256::digest(file);
        let padded = [&file[..], &[0; 1000]].concat();
        assert!(has_hash(&file, &hash));
        assert!(has_hash(&padded, &hash));
        assert!(!has_hash(&padded[1..], &hash));
        assert!(!has_hash(&file[..6], &hash), "a zero is missing");
        assert!(!has_hash(&[], &hash));
    }

    #[test]
    fn a_guard_is_well_where_it_calls_the_exchange_of_the_cluster_and_is_proved_but_for_its_address()
     {
        let [mainnet, devnet] = [ExchangeIds::MAINNET, ExchangeIds::DEVNET].map(|ids| ids.program);
        // An address that is read whole, and one that is compared with by constants of instructions.
        let file = |exchange: Pubkey| {
            let bytes = exchange.to_bytes();
            let constants = bytes.as_chunks::<WORD>().0.iter();
            let compared = constants.flat_map(|word| [&[24, 1, 0, 0], &word[..]].concat());
            [&[7; 8][..], &bytes, &compared.collect::<Vec<_>>(), &[9; 4]].concat()
        };
        let proved = Sha256::digest(file(mainnet));
        let on =
            |exchange: &Pubkey, file: Vec<u8>| judged(&file, exchange, Exchange::Raydium, &proved);
        let well =
            |found: &str| Finding::Well(format!("{PROGRAM_ID}, the bytes that are proved{found}"));
        assert_eq!(on(&mainnet, file(mainnet)), well(""));
        let but = format!(" but for the exchange's address, {devnet}");
        assert_eq!(on(&devnet, file(devnet)), well(&but));
        for (exchange, deployed) in [(mainnet, devnet), (devnet, mainnet)] {
            let Finding::Broken { found, .. } = on(&exchange, file(deployed)) else {
                panic!("a guard that refuses every swap is well");
            };
            let says = format!("calls {deployed}, and not {exchange}");
            assert!(found.contains(&says), "{found}");
        }
        let edited = |exchange| [&file(exchange)[..], &[1]].concat();
        for exchange in [mainnet, devnet] {
            let Finding::Broken { found, remedy } = on(&exchange, edited(exchange)) else {
                panic!("a guard of which nothing is known is no failure");
            };
            assert!(found.contains("other bytes"), "{found}");
            assert!(
                remedy.contains("deploy the guard of this release"),
                "{remedy}"
            );
            let on_localnet = judged(&edited(exchange), &exchange, Exchange::StandIn, &proved);
            assert!(
                matches!(on_localnet, Finding::Doubtful { .. }),
                "{on_localnet:?}"
            );
        }
    }

    #[test]
    fn the_certificate_names_a_sha256() {
        assert_eq!(proved_hash().expect("a hash").len(), 32);
    }
}
