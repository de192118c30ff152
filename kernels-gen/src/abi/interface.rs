//! Text of a kernel's interface: each argument with its type, layout and role, for sources, `wf emit --json` and readers.

use super::{Argument, Indices, KernelAbi, Owner, Role};
use fem_dsl::point::PointForm;

/// Argument of a kernel, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentText {
    /// Its name in the source.
    pub name: String,
    /// Its element type: `u32`, `f64` or `f32`.
    pub kind: &'static str,
    /// Its layout, `[batch][node][lane]` with lengths; `whole vector` for all entries of a vector.
    pub layout: String,
    /// Its meaning.
    pub role: String,
    /// Access: `read`, or `written`.
    pub access: &'static str,
}

impl KernelAbi {
    /// Returns the arguments in words, in their order.
    pub fn interface(&self, form: &PointForm) -> Vec<ArgumentText> {
        self.arguments.iter().map(|argument| self.text_of(argument, form)).collect()
    }

    fn text_of(&self, argument: &Argument, form: &PointForm) -> ArgumentText {
        let Argument { role, name, extent, written } = argument;
        let kind = match (role.is_integer(), self.precision.bytes()) {
            (true, _) => "u32",
            (false, 8) => "f64",
            (false, _) => "f32",
        };
        let lanes = self.lanes;
        let layout = match role {
            Role::Params | Role::Tables => format!("[{extent}]"),
            _ if *extent == 0 => "whole vector".to_owned(),
            _ if *extent == lanes => format!("[batch][{lanes}]"),
            _ if lanes > 1 && extent % lanes == 0 => {
                format!("[batch][{}][{lanes}]", extent / lanes)
            }
            _ => format!("[batch][{extent}]"),
        };
        let access = if *written { "written" } else { "read" };
        ArgumentText { name: name.clone(), kind, layout, role: role_of(*role, form), access }
    }
}

/// Returns the meaning of an argument.
fn role_of(role: Role, form: &PointForm) -> String {
    let field = |number: usize| form.fields.get(number).map_or("?", |field| field.name.as_str());
    let aux = |number: usize| form.aux.get(number).map_or("?", |aux| aux.name.as_str());
    let of = |owner: Owner| match owner {
        Owner::Field(number) | Owner::Result(number) => field(number),
        Owner::Aux(number) => aux(number),
    };
    let unit = |indices: Indices| match indices {
        Indices::Nodes => "nodes",
        Indices::Tiles => "nodes of tiles",
        Indices::Runs => "first degrees of freedom of the entities",
        Indices::Cells => "first degrees of freedom",
        Indices::Dofs => "degrees of freedom",
        Indices::Batches => "degrees of freedom of each cell",
    };
    match role {
        Role::Params => "time and parameters".to_owned(),
        Role::State(number) => format!("state of {}", field(number)),
        Role::Direction(number) => format!("direction of {}", field(number)),
        Role::Result(number) => format!("result of {}", field(number)),
        Role::CellResult(number) => format!("result of {} in each cell", field(number)),
        Role::CellMatrix => "element matrices".to_owned(),
        Role::Matrix => "entries of the sparse matrix".to_owned(),
        Role::Entries => "positions in the sparse matrix".to_owned(),
        Role::Fine => "vector of the finer space".to_owned(),
        Role::Targets => "degrees of freedom of the finer space".to_owned(),
        Role::AuxNodes(number) => format!("{} at nodes", aux(number)),
        Role::AuxCells(number) => format!("{} in cells", aux(number)),
        Role::AuxPoints(number) => format!("{} at quadrature points", aux(number)),
        Role::Starts => "first place of each degree of freedom".to_owned(),
        Role::Places => "places that sum to each degree of freedom".to_owned(),
        Role::Map(owner, indices) => format!("{} of {}", unit(indices), of(owner)),
        Role::Lines(owner, indices, axis) => {
            format!("{} of {}, axis {axis} slowest", unit(indices), of(owner))
        }
        Role::Rows(owner, indices) => {
            format!("{} of {}, the cell's own first axis fastest", unit(indices), of(owner))
        }
        Role::FirstAxis(_) => "axis that is the cell's own first one".to_owned(),
        Role::Turns(number) => format!("entries of {} in the rotated cell", field(number)),
        Role::Signs(owner) => format!("signs of the degrees of freedom of {}", of(owner)),
        Role::Slots(number, indices) => {
            format!("{} of {} in the slots of a batch", unit(indices), field(number))
        }
        Role::Terms(number) => format!("slot and term of each node of {}", field(number)),
        Role::Hanging => "hanging-node constraints of each cell".to_owned(),
        Role::Hang => "hanging-node constraints of a batch".to_owned(),
        Role::Active => "lanes that write".to_owned(),
        Role::Geometry => "geometry".to_owned(),
        Role::Coordinates => "coordinates of the nodes".to_owned(),
        Role::Axis(axis) => format!("coordinate {axis} of the nodes"),
        Role::Diameter => "cell diameters".to_owned(),
        Role::Stored => "values stored at quadrature points".to_owned(),
        Role::Tables => "constants".to_owned(),
    }
}

impl std::fmt::Display for ArgumentText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, kind, layout, role, access } = self;
        write!(f, "{name}: {kind} {layout}, {access}: {role}")
    }
}
