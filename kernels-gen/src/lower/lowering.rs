//! [`Lowering`]: a kernel under construction, with its properties and its arguments.

use super::facts::KernelFacts;
use super::graph::LoweredValues;
use crate::abi::{Argument, Indices, KernelAbi, Role};
use crate::kir::build::Builder;
pub(crate) use crate::kir::build::repeat;
use crate::kir::{
    ArgumentId, Entries, Index, IntegersId, Kernel, Local, LocalId, Precision, SharedId, TableId,
    ValueId, VarId,
};
use crate::plan::{Elements, Linearisation, Plan, Strategy, Target};
use fem_dsl::arena::IndexVec;
use fem_dsl::point::{Input, Location, NodeId, Part, PointForm, Side};
use std::collections::BTreeMap;

/// The stored map of an affine cell.
pub(crate) struct AffineMap {
    pub(super) origin: Vec<ValueId>,
    pub(super) jacobian: Vec<Vec<ValueId>>,
}

/// The loaded terms of a thread or lane: of all nodes of its cell, or of one.
#[derive(Clone, Copy)]
pub(crate) enum SlotTerms {
    Cell(IntegersId),
    Node(VarId),
}

/// Evaluates a value or a reference derivative of a quantity at a point.
pub(crate) type Evaluate<'e> = dyn FnMut(&mut Lowering<'_>, usize, usize, Part) -> ValueId + 'e;

/// A kernel under construction.
pub(crate) struct Lowering<'a> {
    pub(crate) facts: &'a KernelFacts<'a>,
    pub(crate) b: Builder,
    /// Graph nodes that are constant on a cell.
    pub(crate) hoisted: LoweredValues,
    pub(crate) arguments: BTreeMap<Role, ArgumentId>,
    /// Private array for the coefficients of the diagonal.
    coefficients: Option<LocalId>,
    /// Values already computed at one point, by quantity, component and part.
    known: (Index, Vec<((usize, usize, Part), ValueId)>),
    pub(super) abi: Vec<Argument>,
    /// The shared arrays with the slots of vectors, results and coordinates, if cells sum first.
    pub(crate) slots: BTreeMap<Role, SharedId>,
    /// The loaded terms of these slots, by field.
    pub(crate) terms: BTreeMap<usize, SlotTerms>,
    /// The stored map of an affine cell, if it was read ahead of its use.
    pub(crate) affine: Option<AffineMap>,
    /// The private array of gathered corners.
    pub(crate) corners: Option<LocalId>,
}

impl AsMut<Builder> for Lowering<'_> {
    fn as_mut(&mut self) -> &mut Builder {
        &mut self.b
    }
}

impl<'a> Lowering<'a> {
    /// Creates a kernel with its arguments and no statements.
    pub(crate) fn new(facts: &'a KernelFacts<'a>) -> Self {
        let KernelFacts { form, elements, plan, integral, .. } = *facts;
        let mut lowering = Self {
            facts,
            b: Builder::new(&kernel_name(form, elements, plan), plan.precision, plan.lanes),
            hoisted: LoweredValues::new(&integral.graph),
            arguments: BTreeMap::new(),
            coefficients: None,
            known: (Index::default(), Vec::new()),
            abi: Vec::new(),
            slots: BTreeMap::new(),
            terms: BTreeMap::new(),
            affine: None,
            corners: None,
        };
        lowering.declare();
        lowering
    }

    /// Returns the arguments so far, in order.
    pub(crate) fn declared(&self) -> &[Argument] {
        &self.abi
    }

    /// Declares a table indexed by points, which vary between threads if these share a cell.
    pub(crate) fn point_table(&mut self, name: &str, entries: Entries) -> TableId {
        if self.b.has_threads() {
            self.b.spread_table(name, entries)
        } else {
            self.b.table(name, entries)
        }
    }

    /// Returns the index of a value of this batch in a `[batch][point][number]` array.
    pub(crate) fn point_index(&self, numbers: usize, point: &Index, number: usize) -> Index {
        let batch = Index::from(self.b.batch()).times(self.facts.points() * numbers);
        (&batch + &point.times(numbers)).plus(number)
    }

    /// Returns the same for values that kernels store at the points.
    pub(crate) fn stored_index(&self, numbers: usize, point: &Index, number: usize) -> Index {
        if self.facts.plan.target == Target::Vectors {
            return self.point_index(numbers, point, number);
        }
        let batch = Index::from(self.b.batch()).times(self.facts.points() * numbers);
        (&batch + point).plus(number * self.facts.points())
    }

    /// Returns the private array of the Jacobian's coefficients: number `i` of point `q` at `i · points + q`.
    pub(crate) fn coefficients(&mut self, points: usize) -> LocalId {
        let length = self.facts.blocks.numbers * points;
        *self.coefficients.get_or_insert_with(|| self.b.local("coefficients", length))
    }

    /// Returns the values computed at this point; cleared if the point changes.
    pub(crate) fn at_this_point(
        &mut self,
        point: &Index,
    ) -> &mut Vec<((usize, usize, Part), ValueId)> {
        if self.known.0 != *point {
            self.known = (point.clone(), Vec::new());
        }
        &mut self.known.1
    }

    /// Clears the computed values before another cell.
    pub(crate) fn forget(&mut self) {
        self.known = (Index::default(), Vec::new());
        self.corners = None;
    }

    /// Adds a comment on the work for a field.
    pub(crate) fn comment_on(&mut self, what: &str, field: usize) {
        match self.facts.form.fields.as_slice() {
            [_] => self.b.comment(what),
            fields => self.b.comment(&format!("{what} {}", fields[field].name)),
        }
    }

    /// Ends the gather stage, and computes values that are equal at all points.
    pub(crate) fn gathered(&mut self) {
        self.b.stage(self.facts.plan.block);
        self.hoist();
    }

    /// Computes values that are equal at all points of a cell.
    pub(crate) fn hoist(&mut self) {
        let nodes = &self.facts.needed;
        let form = self.facts.form;
        let integral = self.facts.integral;
        let moving = integral.depends_on(|input| match input {
            Input::State(_) | Input::Direction(_) | Input::Coordinate(_) | Input::Normal(_) => true,
            Input::Extent(_) => true,
            Input::Inverse(..) | Input::Tangent(..) | Input::Bend(..) | Input::Density(_) => true,
            Input::Aux(slot) => form.aux[slot.field].location != Location::Cells,
            Input::Param(..) | Input::Time | Input::Diameter(_) | Input::Degree => false,
            Input::PenaltyFactor(_) => false,
        });
        let still: IndexVec<NodeId, bool> = moving.iter().map(|moves| !moves).collect();
        let mut hoisted = self.hoisted.clone();
        hoisted.lower(self, &integral.graph, nodes, Some(&still), |s: &mut Self, input| {
            s.constant_on_cell(input)
        });
        self.hoisted = hoisted;
        self.name_nodes(&self.hoisted.clone());
    }

    /// Names values as in the form.
    pub(crate) fn name_nodes(&mut self, lowered: &LoweredValues) {
        for (&node, name) in &self.facts.integral.names {
            if let Some(value) = lowered.get(node) {
                self.b.name(value, name);
            }
        }
    }

    fn constant_on_cell(&mut self, input: Input) -> ValueId {
        let batch = Index::from(self.b.batch());
        match input {
            Input::Time => {
                let value = self.b.load_uniform(self.arguments[&Role::Params], Index::from(0));
                self.b.name(value, "t")
            }
            Input::Param(param, component) => {
                let before = &self.facts.form.params[..param];
                let offset = 1 + before.iter().map(|p| p.shape.components()).sum::<usize>();
                let index = Index::from(offset + component);
                let value = self.b.load_uniform(self.arguments[&Role::Params], index);
                self.b.name(value, &self.facts.form.params[param].name)
            }
            Input::Degree => self.b.constant(self.facts.elements.degree as f64),
            Input::Diameter(side) => {
                let at = batch.times(self.facts.sides()).plus(side as usize);
                let value = self.b.load_lanes(self.arguments[&Role::Diameter], at);
                self.b.name(value, if side == Side::Inside { "h" } else { "outside_h" })
            }
            Input::Aux(slot) => {
                let aux = &self.facts.form.aux[slot.field];
                let index = batch.times(aux.shape.components()).plus(slot.component);
                let argument = self.arguments[&Role::AuxCells(slot.field)];
                let value = self.b.load_lanes(argument, index);
                self.b.name(value, &aux.name)
            }
            Input::PenaltyFactor(field) => {
                self.b.constant(self.facts.elements.fields[field].penalty_factor())
            }
            Input::State(_)
            | Input::Direction(_)
            | Input::Coordinate(_)
            | Input::Normal(_)
            | Input::Extent(_)
            | Input::Inverse(..)
            | Input::Tangent(..)
            | Input::Bend(..)
            | Input::Density(_) => {
                unreachable!("this input varies over a cell")
            }
        }
    }

    /// Returns the bytes of the declared shared arrays.
    pub(crate) fn shared_bytes(&self) -> usize {
        shared_bytes(self.b.shared_arrays(), self.facts.plan.precision)
    }

    /// Returns the kernel and its interface; `strategy::lower` adds its hash and its accesses.
    pub(crate) fn finish(self) -> (Kernel, KernelAbi) {
        let lines = matches!(self.facts.plan.strategy, Strategy::ThreadPerLine { .. });
        let stores_inside = lines && self.facts.has_result() && self.facts.stores_inside(0);
        let kernel = self.b.finish();
        let entries: usize = kernel.locals.iter().map(|local| local.length).sum();
        let abi = KernelAbi {
            name: kernel.name.clone(),
            lanes: self.facts.plan.lanes,
            threads: kernel.threads.max(1),
            group: kernel.group * kernel.series,
            residency: self.facts.plan.residency,
            in_order: self.facts.plan.in_order,
            slots: self.facts.plan.slots.clone(),
            stores_inside,
            precision: kernel.precision,
            arguments: self.abi,
            reaches: Vec::new(),
            tables: Vec::new(),
            constant_bytes: 0,
            private_bytes: entries * kernel.lanes * kernel.precision.bytes(),
            shared_bytes: shared_bytes(kernel.shared.iter(), kernel.precision),
            hash: 0,
        };
        (kernel, abi)
    }
}

/// Returns the bytes of a group's shared arrays, each aligned to two reals.
fn shared_bytes<'a>(arrays: impl Iterator<Item = &'a Local>, precision: Precision) -> usize {
    arrays.map(|array| array.length.next_multiple_of(2)).sum::<usize>() * precision.bytes()
}

fn kernel_name(form: &PointForm, elements: &Elements, plan: &Plan) -> String {
    let word = match plan.indices {
        Indices::Nodes => "nodes",
        Indices::Tiles => "tiles",
        Indices::Runs => "runs",
        Indices::Cells => "cells",
        Indices::Dofs => "dofs",
        Indices::Batches => "batches",
    };
    let stored = match plan.linearisation {
        Linearisation::Recompute => "",
        Linearisation::Stored => "_stored",
    };
    let region = &form.integrals[plan.integral].region;
    let region = match (region.is_of_cells(), plan.integral) {
        (true, 0) => String::new(),
        (true, number) => format!("_cells{number}"),
        (false, number) if region.is_interior() => {
            let larger = match plan.larger {
                None => "",
                Some(Side::Inside) => "_larger_inside",
                Some(Side::Outside) => "_larger_outside",
            };
            let at = plan.facet.map_or_else(String::new, |facet| format!("_at{facet}"));
            format!("_pairs{number}{larger}{at}")
        }
        (false, number) => match plan.facet {
            None => format!("_facets{number}"),
            Some(facet) => format!("_facets{number}_at{facet}"),
        },
    };
    let hanging = if plan.hanging { "_hanging" } else { "" };
    let (name, task, cell) = (&form.name, plan.task.word(), elements.cell);
    format!("{name}_{task}{region}{stored}_{cell}_{}_{word}{hanging}", elements.degree)
}
