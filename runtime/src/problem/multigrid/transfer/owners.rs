//! Ownership of interface degrees of freedom in transfers: chooses one process for each node ([`NodeOwners`]).
//!
//! The owner is the lowest rank that has the node. If nodes hang, that process may have only cells that constrain the
//! node, which cannot evaluate functions there. The owner is then the lowest rank with a cell that has the node as its
//! own.

use crate::mesh::distributed::PartInterface;
use crate::processes::any;
use crate::processes::interface_exchange::{InterfaceExchange, SharedDof};
use crate::space::Space;
use std::sync::Arc;

/// Owners of the nodes of a subdomain.
pub(super) struct NodeOwners {
    /// Owner rank of each node; infinite if there is none.
    rank_of: Vec<f64>,
    rank: usize,
}

impl NodeOwners {
    /// Chooses owners from the nodes that each process can own. Collective.
    pub(super) fn new(
        cut: &PartInterface,
        space: &Space,
        nodes: impl Iterator<Item = u32>,
    ) -> Self {
        let rank = cut.group().rank();
        let mut rank_of = vec![f64::INFINITY; space.n_nodes()];
        nodes.for_each(|node| rank_of[node as usize] = rank as f64);
        space.sharing(cut.group()).least(&mut rank_of);
        Self { rank_of, rank }
    }

    /// Returns whether another process, or none, owns a node.
    pub(super) fn is_of_others(&self, node: u32) -> bool {
        self.rank_of[node as usize] != self.rank as f64
    }

    /// Returns the exchange by which vectors take the owner's value; `None` if owners are lowest ranks everywhere.
    /// Collective.
    pub(super) fn sharing(
        &self,
        cut: &PartInterface,
        space: &Space,
    ) -> Option<Arc<InterfaceExchange>> {
        // The owner comes first.
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
            own.map(move |unknown| SharedDof { unknown, ranks })
        });
        Some(Arc::new(InterfaceExchange::new(Arc::clone(cut.group()), unknowns)))
    }
}
