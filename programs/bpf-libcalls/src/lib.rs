//! The 128-bit routines that LLVM calls instead of emitting instructions, for upstream BPF.
//!
//! rustc returns a 128-bit value through a hidden pointer, whereas LLVM's BPF backend expects the result of these calls
//! in registers. The routines that ordinarily come with the compiler therefore write through a pointer that was never
//! passed, and corrupt memory. Defined with the `unadjusted` ABI they return the way LLVM expects. The official
//! toolchain (`target_arch = "sbf"`) has neither the problem nor this crate.
//!
//! A program names the crate once (`use bpf_libcalls as _;`), or the linker does not see it.
#![no_std]
#![cfg_attr(target_arch = "bpf", feature(abi_unadjusted))]
#![cfg_attr(
    target_arch = "bpf",
    expect(
        internal_features,
        reason = "no stable ABI returns 128 bits in registers here"
    )
)]

#[cfg(any(test, target_arch = "bpf"))]
mod wide;

#[cfg(target_arch = "bpf")]
mod exports {
    use crate::wide;

    /// `a * b`, modulo 2^128; also serves signed operands, whose low 128 bits are the same.
    #[unsafe(no_mangle)]
    pub extern "unadjusted" fn __multi3(a: u128, b: u128) -> u128 {
        wide::multiply(a, b)
    }

    /// `a / b`. Rust checks for a zero divisor before the call.
    #[unsafe(no_mangle)]
    pub extern "unadjusted" fn __udivti3(a: u128, b: u128) -> u128 {
        wide::divide(a, b).quotient
    }

    /// `a % b`. Rust checks for a zero divisor before the call.
    #[unsafe(no_mangle)]
    pub extern "unadjusted" fn __umodti3(a: u128, b: u128) -> u128 {
        wide::divide(a, b).remainder
    }

    /// `a / b` of two's-complement operands, rounded toward zero.
    #[unsafe(no_mangle)]
    pub extern "unadjusted" fn __divti3(a: u128, b: u128) -> u128 {
        wide::divide_signed(a, b).quotient
    }

    /// `a % b` of two's-complement operands; the sign is that of `a`.
    #[unsafe(no_mangle)]
    pub extern "unadjusted" fn __modti3(a: u128, b: u128) -> u128 {
        wide::divide_signed(a, b).remainder
    }
}
