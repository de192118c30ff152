//! Functions of facets: a kernel takes cells that are rotated so that the facet is ξ₀ = 0. Its function rotates the nodes
//! of each cell of a batch by a table, and the results back.

use super::{Scope, prefixes};
use crate::abi::Role;
use crate::dialect::gnu::StaticKernel;
use crate::plan::{Plan, Task};
use std::fmt::Write;

/// The functions between a cell and its rotation.
const TURNS: &str = "
// The node i of a cell that is rotated for a facet is the node turns[facet * nodes + i] of the cell.
static inline void $NAME_turn(
    const uint16_t *turns, int nodes, int numbers, const int facet[$NAME_WIDTH],
    $REAL (*from)[$NAME_WIDTH], $REAL (*to)[$NAME_WIDTH])
{
    for (int i = 0; i < nodes; ++i) {
        for (int c = 0; c < numbers; ++c) {
            for (int cell = 0; cell < $NAME_WIDTH; ++cell) {
                to[i * numbers + c][cell] = from[turns[facet[cell] * nodes + i] * numbers + c][cell];
            }
        }
    }
}

// The reverse.
static inline void $NAME_turn_back(
    const uint16_t *turns, int nodes, int numbers, const int facet[$NAME_WIDTH],
    $REAL (*from)[$NAME_WIDTH], $REAL (*to)[$NAME_WIDTH])
{
    for (int i = 0; i < nodes; ++i) {
        for (int c = 0; c < numbers; ++c) {
            for (int cell = 0; cell < $NAME_WIDTH; ++cell) {
                to[turns[facet[cell] * nodes + i] * numbers + c][cell] = from[i * numbers + c][cell];
            }
        }
    }
}

// The same in place, of the rows and then of the columns of a block of matrices.
static inline void $NAME_turn_block(
    const uint16_t *row_turns, int rows, const uint16_t *column_turns, int columns,
    const int facet[$NAME_WIDTH], $REAL (*block)[$NAME_WIDTH])
{
    $REAL line[$MOST];
    for (int cell = 0; cell < $NAME_WIDTH; ++cell) {
        for (int j = 0; j < columns; ++j) {
            for (int i = 0; i < rows; ++i) {
                line[row_turns[facet[cell] * rows + i]] = block[j * rows + i][cell];
            }
            for (int i = 0; i < rows; ++i) block[j * rows + i][cell] = line[i];
        }
        for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < columns; ++j) {
                line[column_turns[facet[cell] * columns + j]] = block[j * rows + i][cell];
            }
            for (int j = 0; j < columns; ++j) block[j * rows + i][cell] = line[j];
        }
    }
}
";

impl Scope<'_> {
    /// Prints the functions between a cell and its rotation.
    pub(super) fn turns(&self, text: &mut String) {
        let most = self.elements.fields.iter().map(|element| element.count()).max().unwrap_or(1);
        let functions = TURNS.replace("$NAME", &self.form.name).replace("$REAL", self.real());
        text.push_str(&functions.replace("$MOST", &most.to_string()));
    }

    /// Prints the statements of a function of facets.
    pub(super) fn of_facets(
        &self,
        text: &mut String,
        plan: &Plan,
        kernel: &StaticKernel,
        used: &[Role],
    ) {
        let name = &self.form.name;
        let nodal = |role: Role| {
            let own = &self.parameters[&role];
            let (id, numbers) = own.nodal.as_ref()?;
            let upper = if id == "geometry" { "GEOMETRY" } else { id };
            let nodes = format!("{name}_{upper}_NODES");
            let table = format!("{name}_{id}_turns[0], {nodes}, {numbers}, facet");
            Some((&own.name, table, format!("{nodes} * {numbers}")))
        };
        for role in used {
            if let Some((own, _, length)) = nodal(*role) {
                let _ = writeln!(text, "    {} turned_{own}[{length}][{name}_WIDTH];", self.real());
            }
        }
        let is_result = |role: Role| matches!(role, Role::CellResult(_));
        for role in used.iter().filter(|role| !is_result(**role)) {
            if let Some((own, table, _)) = nodal(*role) {
                let _ = writeln!(text, "    {name}_turn({table}, {own}, turned_{own});");
            }
        }
        let value = |role: &Role| {
            let turned = nodal(*role).map(|(own, _, _)| format!("turned_{own}"));
            self.value(*role, turned.as_deref())
        };
        self.call(text, &kernel.function, &used.iter().map(value).collect::<Vec<_>>());
        for role in used.iter().filter(|role| is_result(**role)) {
            if let Some((own, table, _)) = nodal(*role) {
                let _ = writeln!(text, "    {name}_turn_back({table}, turned_{own}, {own});");
            }
        }
        if plan.task == Task::Matrix {
            self.turn_matrix(text, plan.integral);
        }
    }

    /// Prints the rotation of the blocks of matrices.
    fn turn_matrix(&self, text: &mut String, integral: usize) {
        let name = &self.form.name;
        let prefix = &prefixes(self.form)[integral];
        let matrix = &self.parameters[&Role::CellMatrix].name;
        for (at, pair) in self.matrix(integral).pairs.iter().enumerate() {
            let turns = |row: usize| {
                let id = &self.fields[self.component(row).0];
                format!("{name}_{id}_turns[0], {name}_{id}_NODES")
            };
            let (rows, columns) = (turns(pair.test), turns(pair.trial));
            let _ = writeln!(
                text,
                "    {name}_turn_block({rows}, {columns}, facet, {matrix} + {prefix}_blocks[{at}].first);"
            );
        }
    }
}
