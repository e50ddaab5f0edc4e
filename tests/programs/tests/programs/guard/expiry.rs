//! The slot after which a swap must not execute any more.

use solana_instruction::Instruction;
use swap_guard_interface::{GuardError, NO_EXPIRY, SwapArgs, swap};

use super::scene::{AMOUNT_IN, Scene};

/// The slot in which the swaps execute.
const NOW: u64 = 1_000;

fn scene() -> Scene {
    let mut scene = Scene::set();
    scene.svm.set_slot(NOW);
    scene
}

fn swap_until(scene: &Scene, expiry_slot: u64) -> Instruction {
    let args = SwapArgs {
        amount_in: AMOUNT_IN,
        minimum_out: 1,
        expiry_slot,
    };
    swap(&scene.accounts, args)
}

#[test]
fn accepts_in_the_expiry_slot_before_it_and_without_one() {
    for expiry_slot in [NOW, NOW + 1, u64::MAX, NO_EXPIRY] {
        let mut scene = scene();
        let instruction = swap_until(&scene, expiry_slot);
        let sent = scene.svm.send(&[instruction], &[&scene.user.keypair]);
        assert!(sent.is_ok(), "expiry {expiry_slot}: {:?}", sent.err());
    }
}

#[test]
fn rejects_after_the_expiry_slot() {
    for expiry_slot in [1, NOW - 1] {
        let mut scene = scene();
        let instruction = swap_until(&scene, expiry_slot);
        scene.assert_guard_refuses(instruction, GuardError::Expired);
    }
}

#[test]
fn rejects_an_expired_swap_before_it_calls_anything() {
    /// What an expired swap may cost, compute units: reading fourteen accounts and the clock, and no more.
    const CHEAP: u64 = 1_000;
    let mut scene = scene();
    let instruction = swap_until(&scene, NOW - 1);
    let sent = scene.svm.send(&[instruction], &[&scene.user.keypair]);
    let Err(refused) = sent else {
        panic!("accepted after its expiry");
    };
    assert_eq!(refused.code(), GuardError::Expired.code());
    let is_call = |line: &&String| line.ends_with("invoke [2]");
    assert_eq!(refused.logs.iter().find(is_call), None);
    assert!(
        refused.compute_units <= CHEAP,
        "{} compute units",
        refused.compute_units
    );
}
