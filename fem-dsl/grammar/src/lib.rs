//! The grammar of the language (`grammar.pest`) and the parser that pest derives from it: text → pairs.
//!
//! It is a crate of its own because optimising the derived parser takes longer than optimising all the rest together,
//! while even without it a file is read in a moment: the workspace's profiles leave this crate alone unoptimised. Only
//! `fem_dsl::parse` uses it.

#![allow(missing_docs, reason = "the parser generator writes no documentation")]

/// The parser; its rules are the variants of [`Rule`].
#[derive(pest_derive::Parser)]
#[grammar = "grammar.pest"]
pub struct Grammar;
