//! Arbitrary bytes through every decoder of bytes that come from outside.

#![no_main]

#[path = "../../src/decoders.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decoders::decode_everything(data));
