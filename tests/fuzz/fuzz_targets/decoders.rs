//! Fuzz target: arbitrary bytes through every decoder of bytes that come from outside.

#![no_main]

use sluice_testkit::decoders::decode_everything;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decode_everything(data));
