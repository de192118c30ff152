//! The grammar of the language (`grammar.pest`) and the parser that pest derives from it: text → pairs.
//!
//! It is a separate crate because optimising the derived parser takes longer than optimising the rest of the compiler.
//! An unoptimised parser is fast enough, so the workspace's profiles disable optimisation for this crate only. Only
//! `fem_dsl::parse` uses it.

#![allow(missing_docs, reason = "the parser generator writes no documentation")]

/// The parser; its rules are the variants of [`Rule`].
#[derive(pest_derive::Parser)]
#[grammar = "grammar.pest"]
pub struct Grammar;
