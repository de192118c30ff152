//! Kernels inside another program: kernels of one instruction set → the inside of one module.
//!
//! ```text
//! mod f64x8 { V, M and what goes with them;  pub mod NAME_HASH { tables; run; entry } … }
//! pub static KERNELS: &[(u64, …)] = &[(hash, f64x8::NAME_HASH::entry), …];
//! ```
//!
//! Nothing is exported, so that one program can hold the same kernel several times.

use super::{Isa, entry, function, scalar, tables, trim_lines};
use crate::abi::KernelAbi;
use crate::kir::{Kernel, Precision};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Prints legalised kernels with their interfaces; of kernels with one hash only the first.
pub fn print_nested(kernels: &[(Kernel, KernelAbi)], isa: Isa) -> String {
    let mut groups: BTreeMap<(Precision, usize), BTreeMap<u64, &Kernel>> = BTreeMap::new();
    for (kernel, abi) in kernels {
        let group = groups.entry((kernel.precision, kernel.lanes)).or_default();
        group.entry(abi.hash).or_insert(kernel);
    }
    let mut text = String::new();
    let mut list = String::new();
    for ((precision, lanes), group) in groups {
        let vector = format!("{}x{lanes}", scalar(precision));
        let _ = writeln!(text, "mod {vector} {{");
        text.push_str(&isa.preamble(precision, lanes));
        for (hash, kernel) in group {
            let name = format!("{}_{hash:016x}", kernel.name);
            let _ = writeln!(text, "\npub mod {name} {{\nuse super::*;");
            tables(&mut text, kernel);
            function(&mut text, kernel, isa);
            entry(&mut text, kernel, None);
            text.push_str("}\n");
            let _ = writeln!(list, "    (0x{hash:016x}, {vector}::{name}::entry),");
        }
        text.push_str("}\n");
    }
    let _ = writeln!(
        text,
        "/// Each kernel's hash and function.\n\
         pub static KERNELS: &[(u64, unsafe extern \"C\" fn(usize, usize, *const *const u8))] = &[\n\
         {list}];"
    );
    trim_lines(&text)
}
