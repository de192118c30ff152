//! Kernels embedded in another program: kernels of one instruction set → the contents of one module.
//!
//! ```text
//! mod f64x8 { V, M and the functions on them }
//! pub mod NAME_HASH { tables; run; entry } …
//! pub static KERNELS: &[(u64, …)] = &[(hash, NAME_HASH::entry), …];
//! ```
//!
//! No symbol is exported, so that one program can contain the same kernel several times.

use super::{Isa, body, vocabulary};
use crate::abi::KernelAbi;
use crate::dialect::vectors::trim_lines;
use crate::kir::Kernel;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Prints legalised kernels with their interfaces; of kernels with equal hashes only the first.
pub fn print_nested(kernels: &[(Kernel, KernelAbi)], isa: Isa) -> String {
    let mut each: BTreeMap<u64, &Kernel> = BTreeMap::new();
    for (kernel, abi) in kernels {
        each.entry(abi.hash).or_insert(kernel);
    }
    let bodies = each.values().map(|kernel| (*kernel, body(kernel, isa, None)));
    let bodies: Vec<(&Kernel, String)> = bodies.collect();
    let mut text = vocabulary(&bodies, isa);
    let mut list = String::new();
    for (hash, (kernel, body)) in each.keys().zip(&bodies) {
        let name = format!("{}_{hash:016x}", kernel.name);
        let _ = writeln!(text, "\npub mod {name} {{\n{body}}}");
        let _ = writeln!(list, "    (0x{hash:016x}, {name}::entry),");
    }
    let _ = writeln!(
        text,
        "/// Each kernel's hash and function.\n\
         pub static KERNELS: &[(u64, unsafe extern \"C\" fn(usize, usize, *const *const u8))] = &[\n\
         {list}];"
    );
    trim_lines(&text)
}
