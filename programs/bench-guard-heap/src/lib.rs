//! The guard behind an entrypoint that counts its heap allocations.
//!
//! The guard's code is the shipped one, dispatch included; only the allocator differs. It logs two numbers, u64
//! little-endian, after the guard returned: how many allocations there were before the guard ran, of which exactly one
//! is made on purpose to show that the counter counts, and how many there were afterwards.
#![cfg_attr(target_os = "solana", no_std)]

extern crate alloc;

// Under upstream BPF these supply what the official toolchain builds in; unnamed, they would not be linked.
#[cfg(target_arch = "bpf")]
use {bpf_libcalls as _, solana_compiler_builtins as _};

#[cfg(target_os = "solana")]
mod counted {
    use alloc::boxed::Box;
    use core::{
        alloc::{GlobalAlloc, Layout},
        hint::black_box,
    };

    use pinocchio::entrypoint::{BumpAllocator, HEAP_START_ADDRESS, MAX_HEAP_LENGTH};

    pinocchio::default_panic_handler!();

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    /// Where the count stands: the start of the heap, which the runtime zeroes and the bump allocator is kept from.
    const COUNT: *mut u64 = HEAP_START_ADDRESS as *mut u64;

    struct Counting;

    impl Counting {
        fn bump() -> BumpAllocator {
            // SAFETY: the runtime maps the heap at these addresses, whatever part of it exists.
            unsafe {
                BumpAllocator::new_unchecked(
                    HEAP_START_ADDRESS as usize + size_of::<u64>(),
                    MAX_HEAP_LENGTH as usize - size_of::<u64>(),
                )
            }
        }
    }

    // SAFETY: memory comes from the bump allocator; the count stands outside of what that hands out.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the heap exists, is aligned, and there is one thread.
            unsafe { COUNT.write(COUNT.read().saturating_add(1)) };
            // SAFETY: the caller's promise about the layout is handed on.
            unsafe { Self::bump().alloc(layout) }
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    fn count() -> u64 {
        // SAFETY: as in `alloc`. Volatile, because the optimiser may remove allocations but must not assume their count.
        unsafe { COUNT.read_volatile() }
    }

    /// What the runtime calls.
    ///
    /// # Safety
    /// The arguments are the runtime's: the accounts, and the instruction's data.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn entrypoint(input: *mut u8, data: *const u8) -> u64 {
        black_box(Box::new(black_box(0_u64)));
        let before = count();
        // SAFETY: the runtime's arguments are handed on.
        let result =
            unsafe { swap_guard::runtime::process(input, data, swap_guard::entrypoint::serve) };
        let counts = [before, count()].map(u64::to_le_bytes);
        anchor_lang::prelude::sol_log_data(&[counts.as_flattened()]);
        result
    }
}
