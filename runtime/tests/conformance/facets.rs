//! Facet integrals on cells with all hanging words, in the interpreter. Cells are rotated such that the facet is ξ₀ =
//! 0; the reference uses them unrotated.

use super::interpreter::Interpreted;
use super::launch::{Launcher, Shape};
use super::setting::{Numbering, Setting, Unknowns, words};
use fem_dsl::point::PointForm;
use kernels_gen::abi::{Indices, hanging};
use kernels_gen::element::{Cell, Element, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{Elements, Geometry, Plan, Target, Task};

impl Setting {
    /// Replaces the cells by facets, given as cell and local facet: each cell is rotated such that the facet is ξ₀ = 0,
    /// as facet kernels require. Point data is unchanged.
    pub(super) fn turned(&self, elements: &Elements, facets: &[(usize, usize)]) -> Self {
        let numbering = |element: Element, own: &Numbering| {
            let (count, mut nodes, mut reversed) = (element.count(), Vec::new(), Vec::new());
            for &(cell, facet) in facets {
                let own_nodes = &own.nodes[cell * count..][..count];
                let own_signs = own.reversed.get(cell * count..(cell + 1) * count);
                let turned = element.turned(facet, 0);
                nodes.extend(turned.iter().map(|&node| own_nodes[node]));
                let signs = element.turned_signs(facet, 0).into_iter().zip(turned);
                reversed.extend(
                    signs.map(|(sign, node)| sign ^ own_signs.is_some_and(|own| own[node])),
                );
            }
            Numbering { count: own.count, nodes, starts: Vec::new(), reversed }
        };
        let fields = self.fields.iter().zip(&elements.fields).map(|(field, &element)| Unknowns {
            numbering: numbering(element, &field.numbering),
            state: field.state.clone(),
            direction: field.direction.clone(),
            constrained: field.constrained.clone(),
        });
        let aux = self.aux.iter().zip(&elements.aux);
        let aux = aux.map(|(own, element)| Some(numbering((*element)?, own.as_ref()?)));
        let of_cells = |values: &Vec<f64>, own: &Option<Numbering>| match own {
            Some(_) => values.clone(),
            None => {
                let each = values.len() / self.cells;
                facets
                    .iter()
                    .flat_map(|&(cell, _)| values[cell * each..][..each].to_vec())
                    .collect()
            }
        };
        let dim = self.cell.dim();
        let stride = self.geometry.count() * dim;
        let coordinates = facets.iter().flat_map(|&(cell, facet)| {
            let own = &self.coordinates[cell * stride..][..stride];
            let nodes = self.geometry.turned(facet, 0).into_iter();
            nodes.flat_map(|node| own[node * dim..][..dim].to_vec())
        });
        Self {
            cells: facets.len(),
            coordinates: coordinates.collect(),
            fields: fields.collect(),
            aux: aux.collect(),
            aux_values: self
                .aux_values
                .iter()
                .zip(&self.aux)
                .map(|(v, a)| of_cells(v, a))
                .collect(),
            params: self.params.clone(),
            hanging: facets
                .iter()
                .map(|&(c, facet)| hanging::turned(self.hanging[c], facet, dim))
                .collect(),
            ..*self
        }
    }
}

/// Compares integrals over all facets of cells with all hanging words, in mixed batches, with the reference.
pub(crate) fn facets_that_hang(form: &PointForm, cell: Cell, target: Target) {
    for degree in 1..=if cell == Cell::Quadrilateral { 4 } else { 2 } {
        let rule = default_rule(cell, degree, 1, None);
        let elements = Elements::new(form, cell, degree, rule).expect("elements");
        let (geometry, words) = (Geometry::Nodes(1), words(cell.dim()));
        let mut setting =
            Setting::new(form, degree, rule, Shape::Multilinear, geometry, words.len());
        setting.hanging = words;
        let count = cell.facets().len();
        let facets: Vec<(usize, usize)> = (0..setting.cells)
            .flat_map(|cell| (0..count).map(move |facet| (cell, facet)))
            .collect();
        let launcher = Launcher { form, elements: &elements, setting: &setting };
        let runner = Interpreted { form, elements: &elements, threads: target == Target::Threads };
        for task in [Task::Residual, Task::Action, Task::Diagonal] {
            let plan = Plan {
                hanging: true,
                indices: Indices::Dofs,
                ..Plan::new(target, task, 8, Precision::F64, geometry)
            };
            let turned = &setting.turned(&elements, &facets);
            let got = Launcher { setting: turned, ..launcher }.launch(&plan, &runner);
            let agreement = got.and_then(|got| launcher.agreement(&plan, got, Some(&facets)));
            let agreement =
                agreement.unwrap_or_else(|error| panic!("{cell} {degree} {plan:?}: {error}"));
            assert!(agreement.seen > 0, "{cell} {plan:?}: the bounds hide every entry");
        }
    }
}
