//! Reference of the guard: the same instructions, with their accounts walked and loaded by Anchor.
//!
//! Tests hold the guard's own entrypoint to it: same result, code, return data and event for every list of accounts.
#![cfg_attr(target_os = "solana", no_std)]

// Under upstream BPF these supply what the official toolchain builds in; unnamed, they would not be linked.
#[cfg(target_arch = "bpf")]
use {bpf_libcalls as _, solana_compiler_builtins as _};

#[cfg(target_os = "solana")]
mod entrypoint {
    use swap_guard::{
        entrypoint::check_length,
        runtime::{Input, process},
    };

    anchor_lang::pinocchio::no_allocator!();
    anchor_lang::pinocchio::default_panic_handler!();

    /// What the runtime calls.
    ///
    /// # Safety
    /// The arguments are the runtime's: see `runtime::process`.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn entrypoint(input: *mut u8, data: *const u8) -> u64 {
        let check = |input: &Input| check_length(input.data());
        // SAFETY: the runtime's arguments are handed on, the second time once the first is done with them.
        unsafe {
            match process(input, data, check) {
                0 => swap_guard::__anchor_dispatch(input, data),
                refused => refused,
            }
        }
    }
}
