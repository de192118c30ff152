//! Null space of a problem's equations and conditions: the field, its undetermined part, and the remedy.

use std::fmt;

/// A field, or one component of it, that the equations of a problem do not determine.
#[derive(Clone, Debug, PartialEq)]
pub struct UndeterminedField {
    /// The field.
    pub field: String,
    /// The component, if it is one of several.
    pub component: Option<usize>,
    /// The undetermined part.
    pub null_space: NullSpaceKind,
}

/// The part of a field that the equations of a problem do not determine.
#[derive(Clone, Debug, PartialEq)]
pub enum NullSpaceKind {
    /// A constant.
    Constant,
    /// A constant in each cell, because cells are not coupled.
    EachCell,
    /// A constant on each of several disconnected components of the mesh.
    Part {
        /// The number of mesh components.
        parts: usize,
        /// The number of undetermined ones.
        free: usize,
        /// A point of the first of these.
        at: [f64; 3],
        /// True if the field has a mean-value constraint, which determines the constant of one component.
        mean: bool,
    },
    /// The whole field: no nonzero term of the form contains it or its test function.
    Everything {
        /// A point at which this occurs.
        at: [f64; 3],
    },
    /// A rigid motion of a component of the mesh.
    Motion(Box<RigidMotion>),
}

impl fmt::Display for UndeterminedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.component {
            Some(component) => format!("component {component} of `{}`", self.field),
            None => format!("`{}`", self.field),
        };
        let known = "its solution is known up to a constant";
        match self.null_space {
            NullSpaceKind::Constant => write!(f, "nothing fixes {name}: {known}"),
            NullSpaceKind::EachCell => write!(f, "nothing fixes {name}: {known} in each cell"),
            NullSpaceKind::Part { parts, free, at, mean } => {
                let what = if mean { "`mean` fixes one constant, and nothing" } else { "nothing" };
                let which = match (parts, free) {
                    (_, 1) => format!("one of the {parts} parts of the mesh, at {}", Point(at)),
                    _ => {
                        format!(
                            "{free} of the {parts} parts of the mesh, the first at {}",
                            Point(at)
                        )
                    }
                };
                write!(f, "{what} fixes {name} on {which}: {known} there")
            }
            NullSpaceKind::Everything { at } => {
                write!(f, "no term of the form determines {name} at {}", Point(at))
            }
            NullSpaceKind::Motion(ref motion) => {
                let part = Point(motion.at);
                write!(f, "the conditions on `{}` let the part at {part} {motion}", self.field)
            }
        }
    }
}

/// A rigid motion of a component of a mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RigidMotion {
    dim: usize,
    /// A point of the component.
    pub at: [f64; 3],
    /// The displacement of the axis, or of all points without an axis.
    shift: [f64; 3],
    /// The axis of a rotation: a point of it, and its direction.
    axis: Option<[[f64; 3]; 2]>,
    /// The field component with the largest displacement, at [`Self::vertex`].
    pub component: usize,
    /// A vertex with the largest displacement.
    pub vertex: [f64; 3],
}

/// Relative size below which entries are rounding errors.
const NOTHING: f64 = 1e-9;

/// Returns a vector without rounding errors, its entries to five digits.
fn rounded(vector: [f64; 3], size: f64) -> [f64; 3] {
    vector.map(|entry| match entry.abs() > NOTHING * size {
        true => format!("{entry:.4e}").parse().unwrap_or(entry),
        false => 0.0,
    })
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn length(a: [f64; 3]) -> f64 {
    a.iter().map(|a| a * a).sum::<f64>().sqrt()
}

impl RigidMotion {
    /// Returns the motion s + r × (x − c) of the mesh component at a point, for `(s, r)` and c, with a field component
    /// and a vertex of largest displacement.
    pub fn new(
        dim: usize,
        at: [f64; 3],
        (shift, turn): ([f64; 3], [f64; 3]),
        centre: [f64; 3],
        (component, vertex): (usize, [f64; 3]),
    ) -> Self {
        let (speed, size) = (length(turn), length(shift));
        let reach = length([0, 1, 2].map(|c| vertex[c] - centre[c]));
        let own = Self { dim, at, shift, axis: None, component, vertex };
        if speed * reach <= 1e-6 * size {
            return Self { shift: rounded(shift.map(|s| s / size), 1.0), ..own };
        }
        let direction = turn.map(|turn| turn / speed);
        let away = cross(turn, shift).map(|entry| entry / (speed * speed));
        let through = [0, 1, 2].map(|c| centre[c] + away[c]);
        let along: f64 = direction.iter().zip(shift).map(|(d, s)| d * s).sum();
        let along = if along.abs() > 1e-6 * speed * reach { along } else { 0.0 };
        let axis = Some([rounded(through, reach), rounded(direction, 1.0)]);
        Self { shift: direction.map(|d| d * along), axis, ..own }
    }

    /// Returns a condition that prevents it, in the notation of the language.
    pub fn condition(&self, field: &str) -> String {
        let vertex: Vec<String> = self.vertex[..self.dim].iter().map(f64::to_string).collect();
        format!("dirichlet {field}[{}] = 0 at [{}];", self.component, vertex.join(", "))
    }
}

/// Text of the motion: `turn about …`, `move along …`.
impl fmt::Display for RigidMotion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |vector: [f64; 3]| {
            let entries: Vec<String> = vector[..self.dim].iter().map(f64::to_string).collect();
            format!("({})", entries.join(", "))
        };
        match self.axis {
            None => write!(f, "move along {}", shown(self.shift)),
            Some([through, _]) if self.dim == 2 => write!(f, "turn about {}", shown(through)),
            Some([through, direction]) => {
                let and = if length(self.shift) > 0.0 {
                    "turn about and move along"
                } else {
                    "turn about"
                };
                write!(f, "{and} the axis {} through {}", shown(direction), shown(through))
            }
        }
    }
}

/// A point as messages show it.
pub struct Point(pub [f64; 3]);

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let large = |x: f64| x.abs() >= 1e6 || (x != 0.0 && x.abs() < 1e-6);
        let shown = |x: f64| if large(x) { format!("{x:e}") } else { x.to_string() };
        write!(f, "({})", self.0.map(shown).join(", "))
    }
}

impl UndeterminedField {
    /// Returns a remark on the problem.
    pub fn remark(&self) -> &'static str {
        match self.null_space {
            NullSpaceKind::Constant | NullSpaceKind::EachCell => {
                "this problem has no condition on it"
            }
            NullSpaceKind::Part { .. } => "its conditions do not reach all parts of the mesh",
            NullSpaceKind::Everything { .. } => {
                "its equations read 0 = 0 there, whatever the solution is"
            }
            NullSpaceKind::Motion(_) => "its conditions leave a rigid motion",
        }
    }

    /// Returns the suggested correction.
    pub fn remedy(&self) -> String {
        let field = &self.field;
        match self.null_space {
            NullSpaceKind::Constant => {
                format!("add `dirichlet {field} = …;` or `mean {field} = 0;`")
            }
            NullSpaceKind::EachCell => {
                format!(
                    "let the form have a term in `{field}` itself, or `{field}` live in `H1(k)`"
                )
            }
            NullSpaceKind::Part { .. } => format!(
                "let a condition `dirichlet {field} = …;` reach each part, or mesh the parts as one: \
                 nodes that lie in one place and are not merged join nothing"
            ),
            NullSpaceKind::Everything { .. } => {
                format!("give the form a term in `{field}` whose coefficient is not 0 there")
            }
            NullSpaceKind::Motion(ref motion) => format!(
                "add `{}`, a component at a vertex that this rigid motion moves most",
                motion.condition(field)
            ),
        }
    }
}
