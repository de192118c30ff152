//! The diagonal by a thread a node: each product's coefficients are integrated one direction after another.

use super::{Dofs, barrier};
use crate::kir::{Entries, Index, LocalId, SharedId, TableId, ValueId};
use crate::lower::geometry::AtPoint;
use crate::strategy::diagonal::{Product, coefficients, products, table};
use crate::strategy::factors::nodes_of;
use crate::strategy::point::Evaluate;
use crate::strategy::setting::Setting;

/// What the integration goes through.
pub(super) struct Diagonal {
    components: usize,
    /// Nodes a direction.
    n: usize,
    products: Vec<Product>,
    /// `[component][z][y][x][cell]`, read and written by turns.
    arrays: [SharedId; 2],
    /// φ², φ φ' and φ'² of node i at point q, at `q · n + i`.
    tables: [TableId; 3],
}

impl Diagonal {
    pub(super) fn new(s: &mut Setting<'_>, volume: usize) -> Self {
        let line = s.elements.rule.line().expect("the plan should have checked the rule");
        let nodes = nodes_of(s.elements.fields[0]);
        let (q, n, components) = (line.count(), nodes.count(), s.components(0));
        let arrays = ["r_s", "r_t"].map(|name| s.b.shared(name, components * volume));
        let tables = [0, 1, 2].map(|derived| {
            let matrix = table(nodes, line, derived);
            let entries = (0..n * q).map(|at| matrix.at(at % n, at / n)).collect();
            s.b.spread_table(&format!("products_{derived}_{n}"), Entries::Real(entries))
        });
        let products = products(&s.blocks, s.form.dim);
        Self { components, n, products, arrays, tables }
    }

    /// The coefficients at the thread's point, component by component.
    pub(super) fn at_point(
        &self,
        s: &mut Setting<'_>,
        at: &AtPoint,
        point: &Index,
        evaluate: &mut Evaluate<'_>,
    ) -> Vec<Vec<ValueId>> {
        coefficients(s, &self.products, at, point, evaluate)
    }
}

impl Dofs {
    /// Integrates what is known at the points, and adds it to the thread's node.
    pub(super) fn integrate_diagonal(
        &self,
        s: &mut Setting<'_>,
        diagonal: &Diagonal,
        known: &[Vec<ValueId>],
    ) {
        let sums = s.b.local("sums", diagonal.components);
        s.b.at_cell(self.cell.clone());
        for (number, &product) in diagonal.products.iter().enumerate() {
            for (c, known) in known.iter().enumerate() {
                self.store(s, diagonal.arrays[0], c, known[number]);
            }
            for step in 0..self.dim {
                barrier(s);
                s.b.comment(&format!("integrate in {}", ["x", "y", "z"][step]));
                self.step(s, diagonal, (number, product), step, sums);
            }
            barrier(s);
        }
    }

    /// Integrates a product in one direction.
    fn step(
        &self,
        s: &mut Setting<'_>,
        diagonal: &Diagonal,
        (number, product): (usize, Product),
        step: usize,
        sums: LocalId,
    ) {
        let n = diagonal.n;
        let table = (diagonal.tables[product.derived(step)], n, self.q);
        let (last, done) = (step + 1 == self.dim, number + 1 == diagonal.products.len());
        self.when(s, &self.nodes_up_to(step, n), &mut |s| {
            let mut results = Vec::new();
            for c in 0..diagonal.components {
                let onto = match last && number > 0 {
                    true => s.b.load(sums, Index::from(c)),
                    false => s.b.constant(0.0),
                };
                let sum = self.contract(s, table, (diagonal.arrays[step % 2], c), step, onto);
                match (last, done) {
                    (true, true) => results.push(sum),
                    (true, false) => s.b.store(sums, Index::from(c), sum),
                    (false, _) => self.store(s, diagonal.arrays[(step + 1) % 2], c, sum),
                }
            }
            if !results.is_empty() {
                self.scatter(s, n, &results);
            }
        });
    }
}
