//! The guard for devnet: the proved bytes with another address, which call the exchange there and no other.

use cpmm::{Direction, ExchangeIds, PerToken, instruction::SwapAccounts};
use sluice_testkit::{
    pool::{PoolSpec, guarded_swap},
    svm::{Svm, exchange, program},
};
use swap_guard_interface::{GuardError, PROGRAM_ID};

/// Bytes of a constant in an instruction.
const WORD: usize = 4;

/// These bytes with each word of one address replaced by that of the other.
fn replaced(file: &[u8], from: &ExchangeIds, to: &ExchangeIds) -> Vec<u8> {
    let [from, to] = [from, to].map(|ids| ids.program.to_bytes());
    let words = from.as_chunks::<WORD>().0.iter().zip(to.as_chunks().0);
    let words: Vec<_> = words.collect();
    let mut file = file.to_vec();
    for word in file.as_chunks_mut::<WORD>().0 {
        if let Some((_, to)) = words.iter().find(|(from, _)| *from == word) {
            *word = **to;
        }
    }
    file
}

#[test]
fn it_is_the_guard_but_for_the_exchanges_address() {
    let [mainnet, devnet] = ["swap_guard", "swap_guard_devnet"].map(program);
    assert_ne!(mainnet, devnet);
    let made = replaced(&devnet, &ExchangeIds::DEVNET, &ExchangeIds::MAINNET);
    assert!(
        made == mainnet,
        "the builds differ in more than the address"
    );
}

#[test]
fn it_calls_the_exchange_of_devnet_and_refuses_mainnets() {
    const START: u64 = 1_000_000_000;
    let mut svm = Svm::with_programs(&program("swap_guard_devnet"), &exchange());
    svm.load(ExchangeIds::DEVNET.program, &exchange());
    let pool = svm.open("pool", &PoolSpec::plain());
    let user = svm.fund("user", &pool, PerToken::new(START, START));
    let at = |exchange: ExchangeIds| SwapAccounts {
        exchange,
        ..pool.swap_accounts(&user, Direction::ZeroForOne)
    };
    let mut refused = |exchange| {
        let swap = guarded_swap(&at(exchange), START / 2, 1);
        let sent = svm.send(&[swap], &[&user.keypair]);
        sent.err().expect("the pool is mainnet's")
    };
    let mainnets = refused(ExchangeIds::MAINNET);
    assert_eq!(mainnets.raised_by(), PROGRAM_ID);
    assert_eq!(mainnets.code(), GuardError::WrongExchange.code());
    // The stand-in knows the authority of mainnet alone: that it is what refuses shows that it was called.
    let devnets = refused(ExchangeIds::DEVNET);
    assert_eq!(devnets.raised_by(), ExchangeIds::DEVNET.program);
}
