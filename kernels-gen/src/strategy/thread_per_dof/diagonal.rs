//! The diagonal with a thread per node: each product's coefficients are integrated one direction after another.

use super::Dofs;
use crate::element::LinePoints;
use crate::kir::{Entries, Index, LocalId, SharedId, TableId, ValueId};
use crate::lower::ends::{Product, coefficients, products, table};
use crate::lower::factors::nodes_of;
use crate::lower::jacobian::PointGeometry;
use crate::lower::lowering::Evaluate;
use crate::lower::lowering::Lowering;
use std::ops::Range;

/// The data of the integration.
pub(super) struct Diagonal {
    products: Vec<Product>,
    results: Vec<ElementVector>,
}

/// The diagonal of a field.
struct ElementVector {
    field: usize,
    /// Its components among those of all fields.
    rows: Range<usize>,
    /// Nodes per direction.
    n: usize,
    /// `[component][z][y][x][cell]`, read and written alternately.
    arrays: [SharedId; 2],
    /// φ², φ φ' and φ'² of node i at point q, at `q · n + i`.
    tables: [TableId; 3],
}

impl Diagonal {
    pub(super) fn new(s: &mut Lowering<'_>, volume: usize) -> Self {
        let line = s.facts.elements.rule.line().expect("the plan should have checked the rule");
        let results =
            s.facts.results().into_iter().map(|field| ElementVector::new(s, line, field, volume));
        let results = results.collect();
        Self { products: products(&s.facts.blocks, s.facts.form.dim), results }
    }

    /// Computes the coefficients at the thread's point, component by component.
    pub(super) fn at_point(
        &self,
        s: &mut Lowering<'_>,
        at: &PointGeometry,
        point: &Index,
        evaluate: &mut Evaluate<'_>,
    ) -> Vec<Vec<ValueId>> {
        coefficients(s, &self.products, at, point, evaluate)
    }
}

impl ElementVector {
    fn new(s: &mut Lowering<'_>, line: LinePoints, field: usize, volume: usize) -> Self {
        let nodes = nodes_of(s.facts.elements.fields[field]);
        let (q, n, rows) = (line.count(), nodes.count(), s.facts.rows_of(field));
        let name = s.facts.of_field("r", field);
        let arrays =
            ["s", "t"].map(|word| s.b.shared(&format!("{name}_{word}"), rows.len() * volume));
        let tables = [0, 1, 2].map(|derived| {
            let matrix = table(nodes, line, derived);
            let entries = (0..n * q).map(|at| matrix.at(at % n, at / n)).collect();
            s.b.spread_table(&format!("products_{derived}_{n}"), Entries::Real(entries))
        });
        Self { field, rows, n, arrays, tables }
    }
}

impl Dofs {
    /// Integrates the coefficients at the points, and adds the result to the thread's nodes.
    pub(super) fn integrate_diagonal(
        &self,
        s: &mut Lowering<'_>,
        diagonal: &Diagonal,
        known: &[Vec<ValueId>],
    ) {
        s.b.at_cell(self.cell.clone());
        if diagonal.products.is_empty() {
            // Zeros, for scatter algorithms that need a value for each DoF.
            for ElementVector { field, rows, n, .. } in &diagonal.results {
                let zeros = vec![s.b.constant(0.0); rows.len()];
                self.when(s, &vec![*n; self.dim], &mut |s| self.scatter(s, (*field, *n), &zeros));
            }
            return;
        }
        let results = &diagonal.results;
        let sums: Vec<LocalId> =
            results.iter().map(|result| s.b.local("sums", result.rows.len())).collect();
        for (number, &product) in diagonal.products.iter().enumerate() {
            for result in results {
                for (c, row) in result.rows.clone().enumerate() {
                    self.store(s, result.arrays[0], c, known[row][number]);
                }
            }
            for step in 0..self.dim {
                s.b.barrier();
                s.b.comment(&format!("integrate in {}", ["x", "y", "z"][step]));
                let done = number + 1 == diagonal.products.len();
                for (result, &sums) in results.iter().zip(&sums) {
                    self.step(s, result, (number > 0, product, done), step, sums);
                }
            }
            s.b.barrier();
        }
    }

    /// Integrates a product of a field in one direction. In the last, it adds to the sums of earlier products if there
    /// are any, and to the nodes if it is the last product.
    fn step(
        &self,
        s: &mut Lowering<'_>,
        result: &ElementVector,
        (before, product, done): (bool, Product, bool),
        step: usize,
        sums: LocalId,
    ) {
        let n = result.n;
        let table = (result.tables[product.derived(step)], n, self.q);
        let last = step + 1 == self.dim;
        self.when(s, &self.nodes_up_to(step, n), &mut |s| {
            let mut results = Vec::new();
            for c in 0..result.rows.len() {
                let onto = match last && before {
                    true => s.b.load(sums, Index::from(c)),
                    false => s.b.constant(0.0),
                };
                let sum = self.contract(s, table, (result.arrays[step % 2], c), step, onto);
                match (last, done) {
                    (true, true) => results.push(sum),
                    (true, false) => s.b.store(sums, Index::from(c), sum),
                    (false, _) => self.store(s, result.arrays[(step + 1) % 2], c, sum),
                }
            }
            if !results.is_empty() {
                self.scatter(s, (result.field, n), &results);
            }
        });
    }
}
