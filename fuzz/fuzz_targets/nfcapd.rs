//! See `thalweg_fuzz::nfcapd`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::nfcapd::check(data));
