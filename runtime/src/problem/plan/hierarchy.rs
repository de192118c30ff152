//! Settings of multigrid hierarchies with their defaults: [`HierarchySettings`].

use crate::solve::Smoother;
use fem_dsl::problem::{
    BlockSettings, MultigridSettings, PreconditionerSettings, Smoother as NamedSmoother,
};
use std::collections::BTreeMap;

/// Default number of smoothing steps before and after a correction.
pub const STEPS: usize = 3;

/// Settings of the hierarchy of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSettings {
    /// The smoother.
    pub smoother: Smoother,
    /// Its steps before a correction, and as many after.
    pub steps: usize,
    /// True if all levels are aggregated from the matrix.
    pub is_algebraic: bool,
}

impl Default for LevelSettings {
    fn default() -> Self {
        Self { smoother: Smoother::default(), steps: STEPS, is_algebraic: false }
    }
}

impl From<MultigridSettings> for LevelSettings {
    fn from(settings: MultigridSettings) -> Self {
        let smoother = match settings.smoother {
            Some(NamedSmoother::Jacobi) => Smoother::Jacobi,
            Some(NamedSmoother::Chebyshev) => Smoother::Chebyshev,
            None => Smoother::default(),
        };
        let steps = settings.degree.unwrap_or(STEPS);
        Self { smoother, steps, is_algebraic: settings.is_algebraic }
    }
}

/// Preconditioner of one field of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldPreconditioner {
    /// A multigrid hierarchy.
    Multigrid(LevelSettings),
    /// A mass matrix in place of the Schur complement.
    Mass,
}

/// Settings of the hierarchies of all fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HierarchySettings {
    /// The settings of fields that are not named.
    pub levels: LevelSettings,
    /// The settings of a field by its name.
    pub fields: BTreeMap<String, FieldPreconditioner>,
}

impl HierarchySettings {
    /// The settings of the hierarchy of a field.
    pub fn of_field(&self, name: &str) -> LevelSettings {
        match self.fields.get(name) {
            Some(FieldPreconditioner::Multigrid(settings)) => *settings,
            Some(FieldPreconditioner::Mass) | None => self.levels,
        }
    }

    /// The settings of a preconditioner of the language; `None` if it has no hierarchy.
    pub fn of(preconditioner: &PreconditionerSettings) -> Option<Self> {
        Some(match preconditioner {
            PreconditionerSettings::Multigrid(settings) => {
                Self { levels: (*settings).into(), ..Self::default() }
            }
            PreconditionerSettings::Block(fields) => {
                let field = |(name, of): &(String, BlockSettings)| {
                    let of = match of {
                        BlockSettings::Mass => FieldPreconditioner::Mass,
                        BlockSettings::Multigrid(settings) => {
                            FieldPreconditioner::Multigrid((*settings).into())
                        }
                    };
                    (name.clone(), of)
                };
                Self { fields: fields.iter().map(field).collect(), ..Self::default() }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_that_are_written() {
        let of = |settings| HierarchySettings::of(&settings).expect("a hierarchy");
        let plain = PreconditionerSettings::Multigrid(MultigridSettings::default());
        assert_eq!(of(plain), HierarchySettings::default());
        let levels = MultigridSettings { degree: Some(5), ..MultigridSettings::default() };
        let five = LevelSettings { steps: 5, ..LevelSettings::default() };
        let found = of(PreconditionerSettings::Multigrid(levels));
        assert_eq!(found.levels, five);
        let jacobi = MultigridSettings {
            is_algebraic: true,
            smoother: Some(NamedSmoother::Jacobi),
            degree: None,
        };
        let found = of(PreconditionerSettings::Multigrid(jacobi));
        let expected =
            LevelSettings { smoother: Smoother::Jacobi, is_algebraic: true, steps: STEPS };
        assert_eq!(found.levels, expected);
        let fields = vec![
            ("u".to_owned(), BlockSettings::Multigrid(levels)),
            ("p".to_owned(), BlockSettings::Mass),
        ];
        let block = of(PreconditionerSettings::Block(fields));
        assert_eq!(block.levels, LevelSettings::default());
        assert_eq!(block.fields["p"], FieldPreconditioner::Mass);
        assert_eq!(block.fields["u"], FieldPreconditioner::Multigrid(five));
    }
}
