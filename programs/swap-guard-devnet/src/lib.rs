//! The guard for devnet: the same program, which calls the exchange at its address there.
#![cfg_attr(target_os = "solana", no_std)]

// The guard's crate has the entrypoint; unnamed, it would not be linked.
use swap_guard as _;

// Under upstream BPF these supply what the official toolchain builds in; unnamed, they would not be linked.
#[cfg(target_arch = "bpf")]
use {bpf_libcalls as _, solana_compiler_builtins as _};
