//! The runtime's interface: its input, the walk over the accounts in it, their data, and calls.
//!
//! This is the only file with `unsafe`. The walk passes each account once, and writes down what the runtime needs to know
//! of it for the call to the exchange. Anchor's own dispatcher, generated from `#[program]` and `#[derive(Accounts)]`,
//! would walk, load each account, and leave the lists to be put together after that, for five hundred compute units more;
//! it is in no deployed binary. A reference program serves the same instructions through it, and tests compare the two.

mod listed;

pub use listed::Listed;

use crate::{
    constants::EXCHANGE_ID,
    error::{Checked, Refused},
};
use anchor_lang::{
    ErrorCode,
    pinocchio::account::{MAX_PERMITTED_DATA_INCREASE, NOT_BORROWED, RuntimeAccount},
    prelude::*,
};
use core::{mem::MaybeUninit, ptr, slice};

/// First 8 bytes of the SHA-256 of `global:swap_base_input`.
pub const SWAP_BASE_INPUT: [u8; 8] = [0x8f, 0xbe, 0x5a, 0xda, 0xc4, 0x1e, 0x33, 0xde];

/// First 8 bytes of the SHA-256 of `global:swap_base_output`.
pub const SWAP_BASE_OUTPUT: [u8; 8] = [0x37, 0xd9, 0x62, 0x56, 0xa3, 0x4a, 0xb4, 0xad];

/// Length of the exchange's account list.
pub const LISTED: usize = 13;

/// How many accounts are walked over one by one. A loop would cost every swap fifty compute units; for more accounts than
/// those of one hop it is worth its size. Unrolling it by three would save two compute units and take 400 bytes.
const ONE_BY_ONE: usize = 14;

/// Position of the exchange's program in every list of accounts. The call names it and takes it from the transaction, not from the infos.
const EXCHANGE: usize = 1;

/// Serves one instruction; zero is success, everything else an error as the runtime encodes it.
///
/// # Safety
/// `input` is the runtime's serialized input, aligned to 8 bytes and not used by anybody else; `data` points to the
/// instruction's data in it, between its length and the program's address.
#[inline(always)]
pub unsafe fn process(
    input: *mut u8,
    data: *const u8,
    serve: impl FnOnce(&Input) -> Checked,
) -> u64 {
    serve(&Input { input, data }).map_or_else(Refused::code, |()| 0)
}

/// Makes a function the program's entrypoint.
#[cfg(all(target_os = "solana", not(any(feature = "cpi", feature = "library"))))]
macro_rules! entrypoint {
    ($serve:path) => {
        anchor_lang::pinocchio::no_allocator!();
        anchor_lang::pinocchio::default_panic_handler!();

        /// What the runtime calls.
        ///
        /// # Safety
        /// The arguments are the runtime's: see `runtime::process`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn entrypoint(input: *mut u8, data: *const u8) -> u64 {
            // SAFETY: the runtime's arguments are handed on.
            unsafe { $crate::runtime::process(input, data, $serve) }
        }
    };
}

#[cfg(all(target_os = "solana", not(any(feature = "cpi", feature = "library"))))]
pub(crate) use entrypoint;

/// The runtime's serialized input, as [`process`] was promised it.
pub struct Input {
    input: *mut u8,
    data: *const u8,
}

impl Input {
    /// The instruction's data, whose length stands before it.
    #[inline(always)]
    pub fn data(&self) -> &[u8] {
        // SAFETY: the runtime writes the length, eight bytes, right before the data.
        unsafe {
            let length = self.data.sub(size_of::<usize>()).cast::<usize>();
            slice::from_raw_parts(self.data, length.read_unaligned())
        }
    }

    /// The address that the program runs at, which stands behind the data.
    #[inline(always)]
    pub fn program_id(&self) -> &Address {
        // SAFETY: the runtime writes it there; an address may stand anywhere.
        unsafe { &*self.data.add(self.data().len()).cast() }
    }

    /// Walks over the first `N` accounts.
    ///
    /// # Errors
    /// `NotEnoughAccountKeys`.
    #[inline(always)]
    pub fn walk<'a, const N: usize>(&self, room: &'a mut Room<N>) -> Checked<Accounts<'a, N>> {
        // SAFETY: the input is the runtime's.
        unsafe { room.walk(self.input) }
    }
}

/// Room for what a walk writes down. It stays where it is made, so that nothing of it is moved.
pub struct Room<const N: usize> {
    /// Of all accounts but the exchange's program; the last is never written.
    infos: [MaybeUninit<Info>; N],
    exchange: MaybeUninit<AccountView>,
    repeated: u64,
}

/// The first accounts of an instruction. Each is read from the infos where it is needed: a list of them all would be
/// written down a second time.
pub struct Accounts<'a, const N: usize> {
    infos: &'a [Info],
    exchange: AccountView,
    /// A bit for each position whose account stands in another one too.
    pub repeated: u64,
}

impl<const N: usize> Accounts<'_, N> {
    /// The account of position `at`.
    #[inline(always)]
    pub fn at(&self, at: usize) -> AccountView {
        let info = match at {
            EXCHANGE => return self.exchange,
            at if at < EXCHANGE => &self.infos[at],
            at => &self.infos[at.wrapping_sub(1)],
        };
        // SAFETY: an info is of an account's record.
        unsafe { AccountView::new_unchecked(info.record()) }
    }

    /// Whether the accounts of all these positions are writable. None is the exchange's program.
    #[inline(always)]
    pub fn are_writable(&self, positions: &[usize]) -> bool {
        /// `is_writable`, in four bytes that begin with `is_signer`.
        const IS_WRITABLE: u32 = 1 << 8;
        let mut joined = IS_WRITABLE;
        for at in positions {
            joined &= u32::from_le_bytes(self.infos[at.wrapping_sub(1)].flags);
        }
        joined != 0
    }
}

/// Where its address stands in the record of an account.
const ADDRESS_OFFSET: usize = core::mem::offset_of!(RuntimeAccount, address);

impl<const N: usize> Room<N> {
    #[inline(always)]
    pub const fn empty() -> Self {
        Self {
            infos: [const { MaybeUninit::uninit() }; N],
            exchange: MaybeUninit::uninit(),
            repeated: 0,
        }
    }

    /// Writes down accounts that the framework has walked over, a repeated one repeatedly.
    pub fn fill(&mut self, accounts: &[AccountView; N]) -> Accounts<'_, N> {
        for (at, account) in accounts.iter().enumerate() {
            // SAFETY: a view is of a record of the serialized input; nothing is written through the pointer.
            unsafe { self.note(at, account.account_ptr().cast_mut()) };
        }
        // SAFETY: the loop wrote every account.
        unsafe { self.filled() }
    }

    /// Walks over the first `N` accounts of the serialized input.
    ///
    /// # Errors
    /// `NotEnoughAccountKeys`.
    ///
    /// # Safety
    /// `input` is as [`process`] asks for.
    #[inline(always)]
    unsafe fn walk(&mut self, input: *mut u8) -> Checked<Accounts<'_, N>> {
        // SAFETY: the input starts with the number of records, in eight bytes, which is its alignment.
        let (count, mut next) = unsafe {
            let first = input.add(size_of::<u64>()).add(ADDRESS_OFFSET);
            (*input.cast::<usize>(), first.cast::<Address>())
        };
        if count < N {
            return Err(ErrorCode::AccountNotEnoughKeys.into());
        }
        // SAFETY: there are at least `N` records, and each is stepped over once, in order.
        unsafe {
            next = self.step_over(0, next);
            next = self.step(1, next);
            if N == ONE_BY_ONE {
                next = self.step(2, next);
                next = self.step(3, next);
                next = self.step(4, next);
                next = self.step(5, next);
                next = self.step(6, next);
                next = self.step(7, next);
                next = self.step(8, next);
                next = self.step(9, next);
                next = self.step_or(9, 10, next);
                next = self.step(11, next);
                next = self.step(12, next);
                self.step(13, next);
            } else {
                for at in 2..17 {
                    next = self.step(at, next);
                }
                next = self.step_or(16, 17, next);
                next = self.step_or(16, 18, next);
                for at in 19..N {
                    next = self.step(at, next);
                }
            }
            Ok(self.filled())
        }
    }

    /// # Safety
    /// All accounts are written down.
    #[inline(always)]
    unsafe fn filled(&self) -> Accounts<'_, N> {
        // SAFETY: the caller's promise. That of the exchange's program is not among the infos.
        unsafe {
            let infos = self.infos.as_ptr().cast();
            Accounts {
                infos: slice::from_raw_parts(infos, N.wrapping_sub(1)),
                exchange: self.exchange.assume_init(),
                repeated: self.repeated,
            }
        }
    }

    /// Steps over a record, the one of position `at`, and returns the next one.
    ///
    /// Both are given by where an address stands or would stand in them: that saves the sum that an info of the account
    /// would begin with. The record of an account starts with 255 and is followed by its data, room to grow, padding to
    /// 8 bytes, and 8 more. The record of a repetition starts with the position of the account's first record, and is 8
    /// bytes long.
    ///
    /// # Safety
    /// It is such a record, and all before it were stepped over.
    #[inline(always)]
    unsafe fn step(&mut self, at: usize, address: *mut Address) -> *mut Address {
        // SAFETY: a record that starts with 255 is of an account; every other one is of a repetition.
        unsafe {
            let record = address.byte_sub(ADDRESS_OFFSET).cast::<RuntimeAccount>();
            if (*record).borrow_state != NOT_BORROWED {
                self.repetition(at, record);
                return address.byte_add(size_of::<u64>());
            }
            self.step_over(at, address)
        }
    }

    /// As [`Self::step`], over the record of an account.
    ///
    /// # Safety
    /// As [`Self::step`]; the record is not of a repetition.
    #[inline(always)]
    unsafe fn step_over(&mut self, at: usize, address: *mut Address) -> *mut Address {
        /// Everything but the data. The last eight bytes come after the padding, and are a multiple of it.
        const REST: usize =
            size_of::<RuntimeAccount>() + MAX_PERMITTED_DATA_INCREASE + size_of::<u64>();
        // SAFETY: the record says how long its data is. Another record, or the length of the instruction's data, follows.
        unsafe {
            let record = address.byte_sub(ADDRESS_OFFSET).cast::<RuntimeAccount>();
            let length = usize::from_ne_bytes((*record).data_len.to_ne_bytes());
            self.note(at, record);
            address.byte_add(length.wrapping_add(REST + 7) & !7)
        }
    }

    /// As [`Self::step`], but quick where the record repeats the account of position `earlier`: one token program usually
    /// serves all tokens. Neither position is one whose account must be unique, so that none needs to be marked.
    ///
    /// # Safety
    /// As [`Self::step`].
    #[inline(always)]
    unsafe fn step_or(&mut self, earlier: usize, at: usize, address: *mut Address) -> *mut Address {
        // SAFETY: the caller's promise is handed on; where the record repeats it, the earlier account was written down.
        unsafe {
            let record = address.byte_sub(ADDRESS_OFFSET).cast::<RuntimeAccount>();
            if usize::from((*record).borrow_state) != earlier {
                return self.step(at, address);
            }
            self.note(at, self.written_down(earlier));
            address.byte_add(size_of::<u64>())
        }
    }

    /// Writes down the account that is repeated in position `at`. Apart from the step over an account, so that the usual
    /// way has no branch to join.
    ///
    /// # Safety
    /// As [`Self::step`]; the record is of a repetition, so that it starts with the position of an earlier record.
    #[cold]
    #[inline(never)]
    unsafe fn repetition(&mut self, at: usize, record: *const RuntimeAccount) {
        // SAFETY: the step over the earlier record wrote its account down.
        unsafe {
            let first = (*record).borrow_state;
            let account = self.written_down(first.into());
            self.note(at, account);
            self.repeated |= 1_u64.wrapping_shl(first.into()) | 1_u64 << at;
        }
    }

    /// The account of position `at`.
    ///
    /// # Safety
    /// It is written down.
    #[inline(always)]
    unsafe fn written_down(&self, at: usize) -> *mut RuntimeAccount {
        // SAFETY: the caller's promise.
        unsafe {
            let info = match at {
                EXCHANGE => return self.exchange.assume_init().account_ptr().cast_mut(),
                at if at < EXCHANGE => &self.infos[at],
                at => &self.infos[at.wrapping_sub(1)],
            };
            info.assume_init_ref().record()
        }
    }

    /// Writes down the account of position `at`.
    ///
    /// # Safety
    /// `record` is of an account of the serialized input.
    #[inline(always)]
    unsafe fn note(&mut self, at: usize, record: *mut RuntimeAccount) {
        // SAFETY: the caller's promise is handed on.
        let info = unsafe { Info::of(record) };
        match at {
            // SAFETY: the caller's promise.
            EXCHANGE => {
                _ = self
                    .exchange
                    .write(unsafe { AccountView::new_unchecked(record) })
            }
            at if at < EXCHANGE => _ = self.infos[at].write(info),
            at => _ = self.infos[at.wrapping_sub(1)].write(info),
        }
    }
}

/// What the runtime needs to know of an account for a call: `SolAccountInfo` of its C interface.
#[repr(C)]
pub struct Info {
    address: *const Address,
    lamports: *const u64,
    data_len: u64,
    data: *const u8,
    owner: *const Address,
    /// Not looked at.
    rent_epoch: MaybeUninit<u64>,
    /// `is_signer`, `is_writable`, `executable`, and padding.
    flags: [u8; 4],
}

impl Info {
    /// # Safety
    /// `record` is of an account of the serialized input.
    #[inline(always)]
    unsafe fn of(record: *mut RuntimeAccount) -> Self {
        // SAFETY: the fields are in the record, the four flags one after another, and the data starts behind it.
        unsafe {
            Self {
                address: ptr::addr_of!((*record).address),
                lamports: ptr::addr_of!((*record).lamports),
                data_len: (*record).data_len,
                data: record.add(1).cast(),
                owner: ptr::addr_of!((*record).owner),
                rent_epoch: MaybeUninit::uninit(),
                flags: ptr::addr_of!((*record).is_signer).cast::<[u8; 4]>().read(),
            }
        }
    }

    /// The record, in which the address stands.
    #[inline(always)]
    fn record(&self) -> *mut RuntimeAccount {
        self.address
            .wrapping_byte_sub(ADDRESS_OFFSET)
            .cast_mut()
            .cast()
    }
}

/// Data of one of the exchange's two swap instructions.
#[repr(C)]
pub struct SwapData {
    pub discriminator: [u8; 8],
    /// Both amounts, u64 little-endian.
    pub amounts: [[u8; 8]; 2],
}

/// A call of the exchange: `SolInstruction` of the runtime's C interface.
///
/// Data and account list are built here, out of named accounts; nothing the caller supplied is passed on as bytes. A second
/// call changes what differs.
#[repr(C)]
pub struct ExchangeCall<'a> {
    program_id: &'a Address,
    /// In the exchange's order.
    pub accounts: &'a mut [Listed; LISTED],
    accounts_len: u64,
    pub data: &'a mut SwapData,
    data_len: u64,
}

impl<'a> ExchangeCall<'a> {
    #[inline(always)]
    pub fn new(accounts: &'a mut [Listed; LISTED], data: &'a mut SwapData) -> Self {
        Self {
            program_id: &EXCHANGE_ID,
            accounts,
            accounts_len: LISTED as u64,
            data,
            data_len: size_of::<SwapData>() as u64,
        }
    }

    /// Calls the exchange. All accounts of the call are among these. A failure of the exchange ends the transaction with its
    /// own error.
    #[inline(always)]
    pub fn invoke<const N: usize>(&self, accounts: &Accounts<N>) {
        #[cfg(target_os = "solana")]
        // SAFETY: the runtime reads the call, the lists and the accounts that they point to, and changes accounts. No
        // reference into the data of an account is held: `with_data` lends it for the time of a read.
        unsafe {
            anchor_lang::pinocchio::syscalls::sol_invoke_signed_c(
                ptr::from_ref(self).cast(),
                accounts.infos.as_ptr().cast(),
                accounts.infos.len() as u64,
                ptr::null(),
                0,
            );
        }
        #[cfg(not(target_os = "solana"))]
        core::hint::black_box((&raw const *self, accounts.infos));
    }
}

/// Lends the data of an account for the time of a read, without the flags by which others count their loans: no code
/// here ever lends data to be written, and `read` calls no program.
#[inline(always)]
pub fn with_data<R>(account: &AccountView, read: impl FnOnce(&[u8]) -> R) -> R {
    // SAFETY: a view is of an account's record, with its data behind it, which only a call to another program changes.
    read(unsafe { account.borrow_unchecked() })
}

#[cfg(test)]
mod tests;
