//! Which of several processes names an unknown: from the nodes that each could name to one process for each of them ([`Naming`]).
//!
//! Of the processes that have a node it is the first, unless nodes hang: that one may have only cells that see the node in the place
//! of one of theirs, and none of them can say what a function is there. Then it is the first of those that have a cell with the
//! node as its own.

use crate::mesh::cut::Cut;
use crate::processes::any;
use crate::processes::sharing::{Shared, Sharing};
use crate::space::Space;
use std::sync::Arc;

/// Who names the nodes of a part of a mesh.
pub(super) struct Naming {
    /// Of each node the process, if one can.
    rank_of: Vec<f64>,
    rank: usize,
}

impl Naming {
    /// Of the nodes that this process could name. All processes come here together.
    pub(super) fn new(cut: &Cut, space: &Space, nodes: impl Iterator<Item = u32>) -> Self {
        let rank = cut.group().rank();
        let mut rank_of = vec![f64::INFINITY; space.n_nodes()];
        nodes.for_each(|node| rank_of[node as usize] = rank as f64);
        space.sharing(cut.group()).least(&mut rank_of);
        Self { rank_of, rank }
    }

    /// Whether another process names a node, or none can.
    pub(super) fn is_of_others(&self, node: u32) -> bool {
        self.rank_of[node as usize] != self.rank as f64
    }

    /// By which vectors take what the process has that names an unknown; none where it is the first that has it, everywhere. All
    /// processes come here together.
    pub(super) fn sharing(&self, cut: &Cut, space: &Space) -> Option<Arc<Sharing>> {
        // Who names a node, then the others.
        let mut all: Vec<(usize, Vec<u32>)> = Vec::new();
        let mut others = false;
        for shared in space.shared_nodes() {
            for node in shared.nodes.clone() {
                let named_by = self.rank_of[node as usize];
                let names = |rank: &u32| f64::from(*rank) == named_by;
                let (mut ranks, rest): (Vec<u32>, Vec<u32>) =
                    shared.ranks.iter().partition(|&rank| names(rank));
                ranks.extend(rest);
                others |= ranks.first() != shared.ranks.first();
                all.push((node as usize, ranks));
            }
        }
        if !any(&**cut.group(), others) {
            return None;
        }
        let components = space.components();
        let unknowns = all.iter().flat_map(|(node, ranks)| {
            let own = node * components..(node + 1) * components;
            own.map(move |unknown| Shared { unknown, ranks })
        });
        Some(Arc::new(Sharing::new(Arc::clone(cut.group()), unknowns)))
    }
}
