//! `cargo fuzz run data`: what it does is in `tests/fuzz/targets.rs`.

#![no_main]

#[allow(dead_code, reason = "each program has one target")]
#[path = "../../tests/fuzz/targets.rs"]
mod targets;
#[allow(dead_code, reason = "each program has one target")]
#[path = "../../tests/fuzz/text.rs"]
mod text;
#[allow(dead_code, reason = "each program has one target")]
#[path = "../../tests/fuzz/volume.rs"]
mod volume;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::data(data));
