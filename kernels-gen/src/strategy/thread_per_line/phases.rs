//! The phases of a thread per line, without the columns of points.

use super::{ElementVector, Group, NodalLine, PointRow, SharedQuantity, first_mode, mode_stride};
use crate::abi::Role;
use crate::kir::{Condition, Index, Statement, ValueId};
use crate::lower::contract::{Matrix, contract};
use crate::lower::factors::Factors;
use crate::lower::facts::{Quantity, QuantitySource, gather_axis};
use crate::lower::lowering::Lowering;
use crate::lower::restrict::NodalLocation;
use crate::plan::{Scatter, Task};

impl Group {
    pub(super) fn write(&self, s: &mut Lowering<'_>) {
        s.gathered();
        self.stage_modes(s);
        self.gather(s);
        if self.modes.is_some() || self.inputs.iter().any(|shared| !shared.in_column()) {
            s.b.barrier();
        }
        self.interpolate(s);
        let columns = if self.in_place {
            s.b.comment("columns");
            let columns = self.columns(s);
            s.b.barrier();
            s.b.comment("differentiate in x");
            self.slopes(s, &self.inputs.iter().collect::<Vec<_>>());
            s.b.barrier();
            s.b.comment("points");
            columns
        } else {
            s.b.comment("points");
            self.columns(s)
        };
        if s.facts.plan.task == Task::Diagonal {
            self.diagonal(s, &columns);
            return;
        }
        self.column(s, &columns);
        self.integrate(s);
        self.scatter(s);
    }

    /// Stores the coefficients of the cells' maps in shared memory.
    fn stage_modes(&self, s: &mut Lowering<'_>) {
        let Some(modes) = self.modes else { return };
        let first = first_mode(s);
        let (numbers, count) = (s.facts.geometry_numbers(), s.facts.geometry_numbers() - first);
        let argument = s.arguments[&Role::Geometry];
        let base = Index::from(s.b.batch()).times(numbers);
        let own = Index::from(self.cell).times(mode_stride(s));
        s.b.comment("the maps of the cells");
        for done in (0..count).step_by(self.members) {
            s.b.open_when();
            let at = Index::from(self.member).plus(done);
            let number = s.b.load_lanes(argument, (&base + &at).plus(first));
            s.b.store_shared(modes, &own + &at, number);
            let members = (count - done).min(self.members);
            s.b.close_when(vec![Condition::Below(self.member, members)]);
        }
    }

    /// Returns the axis along which a quantity, or the result, is gathered or scattered.
    pub(super) fn gather_axis(&self, shared: &SharedQuantity) -> usize {
        if shared.hangs {
            return self.nodal_axis(shared);
        }
        gather_axis(self.dim, shared.identity(), shared.flat)
    }

    /// Returns the nodes of a line along `axis`, in an array in the order of lines along `slowest`, if any.
    fn nodes(
        &self,
        line: &NodalLine,
        (factors, (first, total)): (&Factors, (usize, usize)),
        axis: usize,
        slowest: Option<usize>,
    ) -> Vec<Index> {
        let faster = |axis: usize| match slowest {
            Some(slowest) if axis == slowest => (0..self.dim).filter(|&one| one != axis).collect(),
            Some(slowest) => (0..axis).filter(|&one| one != slowest).collect(),
            None => (0..axis).collect::<Vec<usize>>(),
        };
        let stride = |axis: usize| faster(axis).into_iter().map(|axis| factors.n(axis)).product();
        let cell = Index::from(line.batch).times(total).plus(first);
        let other = (0..self.dim).filter(|&other| other != axis);
        let start = other
            .zip(&line.digits)
            .fold(cell, |start, (other, &digit)| &start + &Index::from(digit).times(stride(other)));
        let stride: usize = stride(axis);
        (0..factors.n(axis)).map(|at| start.plus(at * stride)).collect()
    }

    /// Gathers the nodal values of one component on a line of nodes.
    pub(super) fn gather_line(
        &self,
        s: &mut Lowering<'_>,
        (quantity, shared): (&Quantity, &SharedQuantity),
        (line, axis): (&NodalLine, usize),
        component: usize,
    ) -> Vec<ValueId> {
        let nodal = NodalLocation::of(s, quantity);
        let slowest = s.facts.slowest_axis(quantity.source);
        let own = (&shared.factors, s.facts.span_of(quantity.source));
        let nodes = self.nodes(line, own, axis, slowest);
        nodes.iter().map(|node| nodal.gather(&mut s.b, node, component)).collect()
    }

    fn gather(&self, s: &mut Lowering<'_>) {
        self.gather_hanging(s);
        let even_odd = s.facts.plan.even_odd;
        for (quantity, shared) in s.facts.quantities.iter().zip(&self.inputs) {
            if shared.in_column() {
                continue;
            }
            let word = if shared.hangs { "what is left of" } else { "gather" };
            s.b.comment(&format!("{word} {}", quantity.name));
            self.resolve_last(s, shared);
            let nodes = self.nodal_lines(shared);
            self.in_row(s, &nodes.row, |s, row| {
                let axis = self.gather_axis(shared);
                for c in 0..quantity.components {
                    let own = (nodes, axis);
                    let line = if shared.hangs {
                        self.load(&mut s.b, shared.value(), row, &c.into(), shared.factors.n(axis))
                    } else {
                        self.gather_line(s, (quantity, shared), own, c)
                    };
                    let c = &Index::from(c);
                    if shared.identity() {
                        self.store(&mut s.b, shared.value(), row, c, &line);
                        if let Some(slope) = shared.slope(self.turn()) {
                            let slopes = contract(&mut s.b, &self.derive, &line, None, even_odd);
                            self.store(&mut s.b, slope, row, c, &slopes);
                        }
                    } else {
                        let matrix = shared.factors.interpolate(axis);
                        let values = contract(&mut s.b, matrix, &line, None, even_odd);
                        self.store(&mut s.b, shared.value(), row, c, &values);
                    }
                }
            });
        }
    }

    /// Performs the interpolation before the columns: B along the axes other than the gather axis, the last with D at
    /// once, and in three dimensions D in x. Quantities without gradients leave the last axis to the columns. Each
    /// phase performs all available work on all quantities, so that they share its barrier. In place, D in x waits
    /// until columns have read the values.
    fn interpolate(&self, s: &mut Lowering<'_>) {
        let cube = self.dim == 3;
        let later = self.in_place;
        let in_memory = || self.inputs.iter().filter(|shared| !shared.in_column());
        let (still, moved): (Vec<&SharedQuantity>, Vec<&SharedQuantity>) =
            in_memory().partition(|shared| shared.identity());
        let sloped = |all: &[&SharedQuantity]| !later && all.iter().any(|shared| shared.derives(0));
        if cube && (!moved.is_empty() || sloped(&still)) {
            s.b.comment(if moved.is_empty() { "differentiate in x" } else { "interpolate in x" });
            for shared in &moved {
                self.along_x(s, shared, shared.factors.interpolate(0));
            }
            if !later {
                self.slopes(s, &still);
            }
            s.b.barrier();
        }
        let moved: Vec<&SharedQuantity> = moved.into_iter().filter(|shared| !shared.flat).collect();
        if moved.is_empty() {
            return;
        }
        s.b.comment(["", "", "interpolate and differentiate in x", "and in y"][self.dim]);
        for shared in &moved {
            self.interpolate_in_turn(s, shared);
        }
        s.b.barrier();
        if cube && sloped(&moved) {
            s.b.comment("differentiate in x");
            self.slopes(s, &moved);
            s.b.barrier();
        }
    }

    /// Applies a matrix in place along the rows of nodes in x.
    fn along_x(&self, s: &mut Lowering<'_>, shared: &SharedQuantity, matrix: &Matrix) {
        let even_odd = s.facts.plan.even_odd;
        self.in_rows(s, self.rows_at_nodes(shared), |s, row| {
            shared.each_component(s, |s, c| {
                let line = self.load(&mut s.b, shared.value(), row, c, matrix.columns);
                let line = contract(&mut s.b, matrix, &line, None, even_odd);
                self.store(&mut s.b, shared.value(), row, c, &line);
            });
        });
    }

    fn interpolate_in_turn(&self, s: &mut Lowering<'_>, shared: &SharedQuantity) {
        let (matrix, even_odd) = (shared.factors.interpolate(self.turn()), s.facts.plan.even_odd);
        self.in_rows(s, self.rows_at_points(self.turn()), |s, row| {
            shared.each_component(s, |s, c| {
                let line = self.load(&mut s.b, shared.value(), row, c, matrix.columns);
                let values = contract(&mut s.b, matrix, &line, None, even_odd);
                self.store(&mut s.b, shared.value(), row, c, &values);
                if let Some(slope) = shared.slope(self.turn()) {
                    let slopes = contract(&mut s.b, &self.derive, &values, None, even_odd);
                    self.store(&mut s.b, slope, row, c, &slopes);
                }
            });
        });
    }

    /// Applies D in x, in three dimensions.
    fn slopes(&self, s: &mut Lowering<'_>, all: &[&SharedQuantity]) {
        let (q, even_odd) = (self.layout.q, s.facts.plan.even_odd);
        if !all.iter().any(|shared| shared.derives(0)) {
            return;
        }
        self.in_rows(s, self.rows_at_points(0), |s, row| {
            for shared in all {
                let Some(slope) = shared.slope(0) else { continue };
                shared.each_component(s, |s, c| {
                    let line = self.load(&mut s.b, shared.value(), row, c, q);
                    let slopes = contract(&mut s.b, &self.derive, &line, None, even_odd);
                    self.store(&mut s.b, slope, row, c, &slopes);
                });
            }
        });
    }

    /// Applies the transpose: in three dimensions Dᵀ in x, then Dᵀ and Bᵀ in y, then Bᵀ in x. The first and the last
    /// are one phase for results that need only one of them. In place, the columns have performed the first.
    fn integrate(&self, s: &mut Lowering<'_>) {
        let cube = self.dim == 3;
        let done = self.in_place;
        let shared = self.results.iter().filter(|outcome| !outcome.shared.in_column());
        let (still, moved): (Vec<&ElementVector>, Vec<&ElementVector>) =
            shared.partition(|outcome| outcome.shared.identity());
        let sloped =
            |all: &[&ElementVector]| !done && all.iter().any(|outcome| outcome.shared.derives(0));
        let curved: Vec<&ElementVector> =
            moved.iter().copied().filter(|outcome| !outcome.shared.flat).collect();
        if cube && sloped(&curved) {
            s.b.comment("back in x");
            self.slopes_back(s, &curved);
            s.b.barrier();
        }
        if !curved.is_empty() {
            s.b.comment(["", "", "back in x", "back in y"][self.dim]);
            for outcome in &curved {
                self.integrate_in_turn(s, outcome);
            }
            s.b.barrier();
        }
        if cube && (!moved.is_empty() || sloped(&still)) {
            s.b.comment(if moved.is_empty() { "back in x" } else { "integrate in x" });
            for outcome in &moved {
                let shared = &outcome.shared;
                self.along_x(s, shared, &shared.factors.interpolate(0).transposed());
            }
            if !done {
                self.slopes_back(s, &still);
            }
            s.b.barrier();
        }
    }

    /// Applies Dᵀ in x, in three dimensions: onto the values, or in place.
    pub(super) fn slopes_back(&self, s: &mut Lowering<'_>, all: &[&ElementVector]) {
        let (q, even_odd) = (self.layout.q, s.facts.plan.even_odd);
        if !all.iter().any(|outcome| outcome.shared.derives(0)) {
            return;
        }
        let back = self.derive.transposed();
        self.in_rows(s, self.rows_at_points(0), |s, row| {
            for outcome in all {
                let Some(slope) = outcome.shared.slope(0) else { continue };
                let value = outcome.shared.value();
                outcome.each_tested(s, |s, c, derived| {
                    if derived {
                        let onto = !self.in_place;
                        let onto = onto.then(|| self.load(&mut s.b, value, row, c, q));
                        let flux = self.load(&mut s.b, slope, row, c, q);
                        let sum = contract(&mut s.b, &back, &flux, onto.as_deref(), even_odd);
                        self.store(&mut s.b, value, row, c, &sum);
                    }
                });
            }
        });
    }

    fn integrate_in_turn(&self, s: &mut Lowering<'_>, outcome: &ElementVector) {
        let (shared, even_odd) = (&outcome.shared, s.facts.plan.even_odd);
        let integrate = shared.factors.interpolate(self.turn()).transposed();
        self.in_rows(s, self.rows_at_points(self.turn()), |s, row| {
            outcome.each_tested(s, |s, c, derived| {
                let sum = self.back_in_turn(s, shared, row, (c, derived));
                let line = contract(&mut s.b, &integrate, &sum, None, even_odd);
                self.store(&mut s.b, shared.value(), row, c, &line);
            });
        });
    }

    /// Computes the sum of a row of a component and, if it is tested by gradients, Dᵀ of its flux.
    fn back_in_turn(
        &self,
        s: &mut Lowering<'_>,
        shared: &SharedQuantity,
        row: &PointRow,
        (c, derived): (&Index, bool),
    ) -> Vec<ValueId> {
        let (q, even_odd) = (self.layout.q, s.facts.plan.even_odd);
        let values = self.load(&mut s.b, shared.value(), row, c, q);
        match shared.slope(self.turn()).filter(|_| derived) {
            Some(slope) => {
                let flux = self.load(&mut s.b, slope, row, c, q);
                let back = self.derive.transposed();
                contract(&mut s.b, &back, &flux, Some(&values), even_odd)
            }
            None => values,
        }
    }

    fn scatter(&self, s: &mut Lowering<'_>) {
        let even_odd = s.facts.plan.even_odd;
        for outcome in self.results.iter().filter(|outcome| !outcome.shared.in_column()) {
            let shared = &outcome.shared;
            s.comment_on(if shared.hangs { "nodes of" } else { "scatter" }, outcome.field);
            let nodes = self.nodal_lines(shared);
            self.in_row(s, &nodes.row, |s, row| {
                for (c, tested) in outcome.rows.clone().enumerate() {
                    let at = Index::from(c);
                    let line = if shared.identity() {
                        let derived = s.facts.tested(tested).1;
                        self.back_in_turn(s, shared, row, (&at, derived))
                    } else {
                        let axis = self.gather_axis(shared);
                        let matrix = shared.factors.interpolate(axis).transposed();
                        let line = self.load(&mut s.b, shared.value(), row, &at, self.layout.q);
                        contract(&mut s.b, &matrix, &line, None, even_odd)
                    };
                    if shared.hangs {
                        self.store(&mut s.b, shared.value(), row, &at, &line);
                        continue;
                    }
                    self.scatter_line(s, outcome, nodes, (self.gather_axis(shared), c), &line);
                }
            });
        }
        self.scatter_hanging(s);
    }

    /// Adds to the DoFs of one component of a field on a line of nodes along an axis.
    pub(super) fn scatter_line(
        &self,
        s: &mut Lowering<'_>,
        outcome: &ElementVector,
        nodes: &NodalLine,
        (axis, component): (usize, usize),
        line: &[ValueId],
    ) {
        let field = outcome.field;
        let (nodal, source) = (NodalLocation::result(s, field), QuantitySource::Direction(field));
        // Contributions that a cell stores for the owners of DoFs follow the order of its nodes.
        let adds = s.facts.plan.scatter != Scatter::Owner;
        let slowest = s.facts.slowest_axis(source).filter(|_| adds);
        let last = line.len() - 1;
        let inside = s.facts.stores_inside(field).then(|| {
            let mut digits = nodes.digits.iter().copied();
            let first = digits.next().expect("a line should have coordinates");
            let digits = [first, digits.next().unwrap_or(first)];
            let border = s.b.border_var("border", digits, last);
            if line.len() > s.facts.plan.recomputed {
                s.b.statement(Statement::Recompute(border));
            }
            nodal.inside(border)
        });
        let own = (&outcome.shared.factors, s.facts.span_of(source));
        let nodes = self.nodes(nodes, own, axis, slowest);
        for (i, (node, &value)) in nodes.iter().zip(line).enumerate() {
            let inside = inside.filter(|_| 0 < i && i < last);
            inside.unwrap_or(nodal).scatter(&mut s.b, node, component, value);
        }
    }
}
