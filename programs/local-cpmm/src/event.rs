//! Event of the exchange, written to the log at every swap.

use pinocchio::Address;

/// First 8 bytes of the SHA-256 of `event:SwapEvent`.
const DISCRIMINATOR: [u8; 8] = [0x40, 0xc6, 0xcd, 0xe8, 0x26, 0x08, 0x71, 0xe2];
/// Length with discriminator.
const ENCODED_LEN: usize = 170;

/// One swap. Amounts in the smallest unit of their token.
pub struct SwapEvent<'a> {
    pub pool_id: &'a Address,
    /// Reserve of the input token, net of accrued fees.
    pub input_vault_before: u64,
    /// Reserve of the output token, net of accrued fees.
    pub output_vault_before: u64,
    /// Net of the transfer fee.
    pub input_amount: u64,
    /// Before the transfer fee.
    pub output_amount: u64,
    pub input_transfer_fee: u64,
    pub output_transfer_fee: u64,
    /// Whether the input was given, and not the output.
    pub is_base_input: bool,
    pub input_mint: &'a Address,
    pub output_mint: &'a Address,
    pub trade_fee: u64,
    pub creator_fee: u64,
    pub creator_fee_on_input: bool,
}

impl SwapEvent<'_> {
    /// Writes the event to the log, as one `Program data:` line.
    pub fn log(&self) {
        let bytes = self.encode();
        let fields: [&[u8]; 1] = [&bytes];
        #[cfg(target_os = "solana")]
        // SAFETY: the runtime reads one slice descriptor, and the bytes it points to, during the call.
        unsafe {
            pinocchio::syscalls::sol_log_data(fields.as_ptr().cast(), 1);
        }
        #[cfg(not(target_os = "solana"))]
        core::hint::black_box(fields);
    }

    fn encode(&self) -> [u8; ENCODED_LEN] {
        let base_input = [u8::from(self.is_base_input)];
        let fields: [&[u8]; 14] = [
            &DISCRIMINATOR,
            self.pool_id.as_array(),
            &self.input_vault_before.to_le_bytes(),
            &self.output_vault_before.to_le_bytes(),
            &self.input_amount.to_le_bytes(),
            &self.output_amount.to_le_bytes(),
            &self.input_transfer_fee.to_le_bytes(),
            &self.output_transfer_fee.to_le_bytes(),
            &base_input,
            self.input_mint.as_array(),
            self.output_mint.as_array(),
            &self.trade_fee.to_le_bytes(),
            &self.creator_fee.to_le_bytes(),
            &[u8::from(self.creator_fee_on_input)],
        ];
        let mut bytes = [0; ENCODED_LEN];
        let mut rest = bytes.as_mut_slice();
        for field in fields {
            let (head, tail) = rest.split_at_mut(field.len());
            head.copy_from_slice(field);
            rest = tail;
        }
        bytes
    }
}
