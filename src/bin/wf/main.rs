//! `wf`: the command line of weakform.

fn main() {}
