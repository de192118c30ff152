//! The phases of a thread a line, but for the columns of points.

use super::{Group, Held, NodalLine, Row, barrier, first_mode, mode_stride};
use crate::abi::Role;
use crate::kir::{Index, Statement, ValueId};
use crate::lower::contract::contract;
use crate::plan::{Scatter, Task};
use crate::strategy::nodal::Nodal;
use crate::strategy::setting::{Quantity, Setting, Source, gather_axis};

impl Group {
    pub(super) fn write(&self, s: &mut Setting<'_>) {
        s.gathered();
        self.stage_modes(s);
        self.gather(s);
        if !(self.flat && self.inputs.iter().all(Held::identity)) || self.modes.is_some() {
            barrier(s);
        }
        self.interpolate(s);
        self.slopes(s);
        if s.plan.task == Task::Diagonal {
            self.diagonal(s);
            return;
        }
        self.column(s);
        if let Some(result) = &self.result {
            self.slopes_back(s, result);
            self.integrate(s, result);
            self.scatter(s, result);
        }
    }

    /// The coefficients of the cells' maps, to shared memory.
    fn stage_modes(&self, s: &mut Setting<'_>) {
        let Some(modes) = self.modes else { return };
        let first = first_mode(s);
        let (numbers, count) = (s.geometry_numbers(), s.geometry_numbers() - first);
        let argument = s.arguments[&Role::Geometry];
        let base = Index::from(s.b.batch()).times(numbers);
        let own = Index::from(self.cell).times(mode_stride(s));
        s.b.comment("the maps of the cells");
        for done in (0..count).step_by(self.members) {
            s.b.open_when();
            let at = Index::from(self.member).plus(done);
            let number = s.b.load_lanes(argument, (&base + &at).plus(first));
            s.b.statement(Statement::StoreShared(modes, &own + &at, number));
            s.b.close_when(vec![(self.member, (count - done).min(self.members))]);
        }
    }

    /// The axis along which a quantity, or the result, is gathered or scattered.
    pub(super) fn gather_axis(&self, held: &Held) -> usize {
        gather_axis(self.dim, held.identity(), self.flat)
    }

    /// The nodes of a line along `axis`, in an array where they are in the order of lines along `turned`, if any.
    fn nodes(&self, line: &NodalLine, n: usize, axis: usize, turned: Option<usize>) -> Vec<Index> {
        let power = |axis: usize| match turned {
            Some(slowest) if axis == slowest => n.pow(self.dim as u32 - 1),
            Some(slowest) if axis > slowest => n.pow(axis as u32 - 1),
            _ => n.pow(axis as u32),
        };
        let cell = Index::from(line.batch).times(n.pow(self.dim as u32));
        let other = (0..self.dim).filter(|&other| other != axis);
        let start = other
            .zip(&line.digits)
            .fold(cell, |start, (other, &digit)| &start + &Index::from(digit).times(power(other)));
        (0..n).map(|at| start.plus(at * power(axis))).collect()
    }

    /// The nodal values of one component on the thread's line of nodes.
    pub(super) fn gather_line(
        &self,
        s: &mut Setting<'_>,
        quantity: &Quantity,
        held: &Held,
        component: usize,
    ) -> Vec<ValueId> {
        let (n, nodal) = (held.factors.n, Nodal::of(s, quantity));
        let turned = s.turned(quantity.source);
        let nodes = self.nodes(&self.nodal[&n], n, self.gather_axis(held), turned);
        nodes.iter().map(|node| nodal.gather(&mut s.b, node, component)).collect()
    }

    fn gather(&self, s: &mut Setting<'_>) {
        let even_odd = s.plan.even_odd;
        for (quantity, held) in s.quantities.clone().iter().zip(&self.inputs) {
            if self.flat && held.identity() {
                // A column gathers it.
                continue;
            }
            s.b.comment(&format!("gather {}", quantity.name));
            self.in_row(s, &self.nodal[&held.factors.n].row, |s, row| {
                for c in 0..quantity.components {
                    let line = self.gather_line(s, quantity, held, c);
                    if held.identity() {
                        self.store(&mut s.b, held.value, row, c, &line);
                        if let Some(slopes) = &held.slopes {
                            let slope = contract(&mut s.b, &self.derive, &line, None, even_odd);
                            self.store(&mut s.b, slopes[self.turn()], row, c, &slope);
                        }
                    } else {
                        let matrix = &held.factors.interpolate;
                        let values = contract(&mut s.b, matrix, &line, None, even_odd);
                        self.store(&mut s.b, held.value, row, c, &values);
                    }
                }
            });
        }
    }

    /// B along the axes but the one of the gathering, the last with D at once; where there are no
    /// gradients, all but the last axis.
    fn interpolate(&self, s: &mut Setting<'_>) {
        let even_odd = s.plan.even_odd;
        let moved = |held: &&Held| !held.identity();
        if !self.inputs.iter().any(|held| moved(&held)) {
            return;
        }
        if self.dim == 3 {
            s.b.comment("interpolate in x");
            for held in self.inputs.iter().filter(moved) {
                let (n, matrix) = (held.factors.n, &held.factors.interpolate);
                self.in_rows(s, (0, n), |s, row| {
                    for c in 0..held.components {
                        let line = self.load(&mut s.b, held.value, row, c, n);
                        let values = contract(&mut s.b, matrix, &line, None, even_odd);
                        self.store(&mut s.b, held.value, row, c, &values);
                    }
                });
            }
            barrier(s);
        }
        if self.flat {
            return;
        }
        s.b.comment(["", "", "interpolate and differentiate in x", "and in y"][self.dim]);
        for held in self.inputs.iter().filter(moved) {
            let (n, matrix) = (held.factors.n, &held.factors.interpolate);
            self.in_rows(s, (self.turn(), self.layout.q), |s, row| {
                for c in 0..held.components {
                    let line = self.load(&mut s.b, held.value, row, c, n);
                    let values = contract(&mut s.b, matrix, &line, None, even_odd);
                    self.store(&mut s.b, held.value, row, c, &values);
                    if let Some(slopes) = &held.slopes {
                        let slope = contract(&mut s.b, &self.derive, &values, None, even_odd);
                        self.store(&mut s.b, slopes[self.turn()], row, c, &slope);
                    }
                }
            });
        }
        barrier(s);
    }

    /// D in x, in three dimensions.
    fn slopes(&self, s: &mut Setting<'_>) {
        if self.dim == 2 || self.inputs.iter().all(|held| held.slopes.is_none()) {
            return;
        }
        s.b.comment("differentiate in x");
        let (q, even_odd) = (self.layout.q, s.plan.even_odd);
        self.in_rows(s, (0, q), |s, row| {
            for held in &self.inputs {
                let Some(slopes) = &held.slopes else { continue };
                for c in 0..held.components {
                    let line = self.load(&mut s.b, held.value, row, c, q);
                    let slope = contract(&mut s.b, &self.derive, &line, None, even_odd);
                    self.store(&mut s.b, slopes[0], row, c, &slope);
                }
            }
        });
        barrier(s);
    }

    /// Dᵀ in x, in three dimensions.
    fn slopes_back(&self, s: &mut Setting<'_>, result: &Held) {
        let (q, even_odd) = (self.layout.q, s.plan.even_odd);
        let Some(slopes) = result.slopes.as_ref().filter(|_| self.dim == 3) else { return };
        let back = self.derive.transposed();
        s.b.comment("back in x");
        self.in_rows(s, (0, q), |s, row| {
            for c in (0..result.components).filter(|&c| s.tested(c).1).collect::<Vec<_>>() {
                let values = self.load(&mut s.b, result.value, row, c, q);
                let flux = self.load(&mut s.b, slopes[0], row, c, q);
                let sum = contract(&mut s.b, &back, &flux, Some(&values), even_odd);
                self.store(&mut s.b, result.value, row, c, &sum);
            }
        });
        barrier(s);
    }

    /// Dᵀ and Bᵀ in y, then Bᵀ in x; the latter alone where there are no gradients.
    fn integrate(&self, s: &mut Setting<'_>, result: &Held) {
        let (q, even_odd) = (self.layout.q, s.plan.even_odd);
        if result.identity() {
            return;
        }
        let integrate = result.factors.interpolate.transposed();
        if !self.flat {
            s.b.comment(["", "", "back in x", "back in y"][self.dim]);
            self.in_rows(s, (self.turn(), q), |s, row| {
                for c in 0..result.components {
                    let sum = self.back_in_turn(s, result, row, c);
                    let line = contract(&mut s.b, &integrate, &sum, None, even_odd);
                    self.store(&mut s.b, result.value, row, c, &line);
                }
            });
            barrier(s);
        }
        if self.dim == 3 {
            s.b.comment("integrate in x");
            self.in_rows(s, (0, result.factors.n), |s, row| {
                for c in 0..result.components {
                    let line = self.load(&mut s.b, result.value, row, c, q);
                    let line = contract(&mut s.b, &integrate, &line, None, even_odd);
                    self.store(&mut s.b, result.value, row, c, &line);
                }
            });
            barrier(s);
        }
    }

    /// The sum of a row and Dᵀ of its flux.
    fn back_in_turn(
        &self,
        s: &mut Setting<'_>,
        result: &Held,
        row: &Row,
        c: usize,
    ) -> Vec<ValueId> {
        let (q, even_odd) = (self.layout.q, s.plan.even_odd);
        let values = self.load(&mut s.b, result.value, row, c, q);
        match result.slopes.as_ref().filter(|_| s.tested(c).1) {
            Some(slopes) => {
                let flux = self.load(&mut s.b, slopes[self.turn()], row, c, q);
                let back = self.derive.transposed();
                contract(&mut s.b, &back, &flux, Some(&values), even_odd)
            }
            None => values,
        }
    }

    fn scatter(&self, s: &mut Setting<'_>, result: &Held) {
        if self.flat && result.identity() {
            // The columns have done it.
            return;
        }
        let (n, even_odd) = (result.factors.n, s.plan.even_odd);
        s.b.comment("scatter");
        self.in_row(s, &self.nodal[&n].row, |s, row| {
            for c in 0..result.components {
                let line = if result.identity() {
                    self.back_in_turn(s, result, row, c)
                } else {
                    let matrix = result.factors.interpolate.transposed();
                    let line = self.load(&mut s.b, result.value, row, c, self.layout.q);
                    contract(&mut s.b, &matrix, &line, None, even_odd)
                };
                self.scatter_line(s, result, self.gather_axis(result), c, &line);
            }
        });
    }

    /// Adds to the unknowns of one component on the thread's line of nodes along an axis.
    pub(super) fn scatter_line(
        &self,
        s: &mut Setting<'_>,
        result: &Held,
        axis: usize,
        component: usize,
        line: &[ValueId],
    ) {
        let (n, nodal) = (result.factors.n, Nodal::result(s, 0));
        // What a cell stores for the owners of unknowns is in the order of its nodes.
        let adds = s.plan.scatter != Scatter::Owner;
        let turned = s.turned(Source::Direction(0)).filter(|_| adds);
        let nodes = self.nodes(&self.nodal[&n], n, axis, turned);
        for (node, &value) in nodes.iter().zip(line) {
            nodal.scatter(&mut s.b, node, component, value);
        }
    }
}
