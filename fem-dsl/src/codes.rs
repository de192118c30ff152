//! The codes of all diagnostics, each with its page.
//!
//! E01xx syntax, E02xx names and shapes, E03xx rules of forms, E04xx problems and their settings, E09xx features that
//! this version parses but does not implement. Warnings have the same ranges, from W0201 on. A page is a file of
//! `codes/`: a wrong example, the reason, and the corrected example; `wf explain E0203` prints it.

macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident = $id:literal,)*) => {
        /// The kind of a diagnostic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$meta])* $name,)*
        }

        impl Code {
            /// All codes, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the code as printed: `E0203`.
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)*
                }
            }

            /// Returns its page, in Markdown.
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$name => include_str!(concat!("codes/", $id, ".md")),)*
                }
            }
        }
    };
}

codes! {
    /// An unexpected token.
    UnexpectedToken = "E0101",
    /// A character that the language does not use.
    UnknownCharacter = "E0102",
    /// A number in a notation that the language does not have.
    MalformedNumber = "E0103",
    /// A string that is not closed on its line, has a backslash, or has no space before it.
    MalformedString = "E0104",
    /// A block comment without an end.
    UnclosedComment = "E0105",
    /// A bracket without its partner.
    UnmatchedBracket = "E0106",
    /// Brackets or `else if` nested more than 128 deep.
    NestedTooDeeply = "E0107",
    /// A reserved word used as a name.
    ReservedWord = "E0108",
    /// `a < b < c`.
    ChainedComparison = "E0109",
    /// The file is longer than 1 MiB.
    FileTooLarge = "E0110",
    /// The file is not UTF-8.
    NotUtf8 = "E0111",
    /// A documentation comment that precedes no item.
    StrayDocumentation = "E0112",
    /// `if` without `else`.
    MissingElse = "E0113",
    /// A number above the largest f64, or one that would underflow to 0.
    NumberTooLarge = "E0114",
    /// Too many errors to continue.
    TooManyErrors = "E0115",

    /// An undeclared name.
    UnknownName = "E0201",
    /// Operands with incompatible shapes.
    ShapeMismatch = "E0202",
    /// A row, parameter or value with the wrong shape.
    WrongShape = "E0203",
    /// A wrong number of arguments.
    WrongArgumentCount = "E0204",
    /// An index that is no integer in range, or a wrong number of indices.
    BadIndex = "E0205",
    /// Two declarations of one name.
    DuplicateName = "E0206",
    /// A name defined in terms of itself.
    Cycle = "E0207",
    /// A derivative that does not exist or is not available at a point.
    NoDerivative = "E0208",
    /// A comparison outside a condition, or a number used as one.
    NotACondition = "E0209",
    /// A function used as a value, or a value used as a function.
    NotAFunction = "E0210",
    /// A name that exists but is not available in this context.
    NotAvailableHere = "E0211",
    /// Rows of a matrix of different lengths, or an empty array.
    RaggedArray = "E0212",
    /// An argument with a shape that the function does not accept.
    WrongArgumentShape = "E0213",
    /// A value with one for each of two cells, without a word for its side.
    TwoValues = "E0214",
    /// A word for a side of something that has no sides, or has one already.
    MisplacedSide = "E0215",
    /// A complex value in the place of a real one.
    ComplexValue = "E0216",

    /// A form without an unknown field.
    NoField = "E0301",
    /// A field without any row.
    MissingRow = "E0302",
    /// A duplicate row.
    DuplicateRow = "E0303",
    /// More than one of the three notations in a region.
    MixedWays = "E0304",
    /// A residual that is not linear in its test functions.
    NotLinear = "E0305",
    /// A space with a degree out of range.
    BadDegree = "E0306",
    /// A parameter whose default is not finite.
    NotFinite = "E0307",
    /// Two forms or two problems of one name.
    DuplicateDeclaration = "E0308",
    /// A number of components out of range.
    BadComponentCount = "E0309",
    /// A form that expands to too much arithmetic.
    TooLarge = "E0310",
    /// An integral over facets between cells that depends on which of them comes first.
    DependsOnOrder = "E0311",
    /// A test function of a complex field that is not conjugated.
    NotConjugated = "E0312",

    /// A problem that solves an unknown form.
    UnknownForm = "E0401",
    /// A problem that lacks a required statement.
    MissingSetting = "E0402",
    /// An unknown mesh generator.
    UnknownGenerator = "E0403",
    /// An argument that is unknown, duplicate or missing.
    BadArgument = "E0404",
    /// A value out of range or of the wrong kind.
    BadValue = "E0405",
    /// A duplicate item.
    DuplicateItem = "E0406",
    /// An unknown solver.
    UnknownSolver = "E0407",
    /// A name in a problem that its form does not have.
    NotInForm = "E0408",
    /// A mesh of a dimension in which the form is not valid.
    WrongDimension = "E0409",
    /// A condition without a value, and without a known solution that defines it.
    NoKnownSolution = "E0410",
    /// A problem that is not in the file.
    UnknownProblem = "E0411",
    /// A field without a term or condition that makes it unique.
    Unfixed = "E0412",
    /// A mesh that cannot be read or generated.
    BadMesh = "E0413",
    /// An invalid manufactured solution.
    BadManufactured = "E0414",
    /// A mean-value constraint on a field with an essential condition.
    MeanOfFixed = "E0415",
    /// A condition on a field that has no values on the boundary.
    ConditionInL2 = "E0416",
    /// Spaces of two fields that are not inf-sup stable.
    UnstablePair = "E0417",
    /// A form that has no finite value at the state of a solve.
    NoFiniteValue = "E0418",
    /// Data or a state from a file that cannot be used.
    BadFile = "E0419",
    /// `file(…)` in a place that does not accept a file.
    MisplacedFile = "E0420",
    /// A Jacobian that is singular at the start of a solve.
    DegenerateStart = "E0423",

    /// A word reserved for later versions.
    LaterWord = "E0910",

    /// An unused parameter, expression, function or data.
    UnusedName = "W0201",
    /// A discontinuous field whose cells lack a coupling.
    UncoupledCells = "W0301",
    /// Terms between cells that are not those of the flux in the cells.
    InconsistentFlux = "W0302",
    /// Second derivatives of a field in its equation that only values test.
    TestedByValues = "W0303",
    /// Two conditions with different values on one part of the boundary.
    ReplacedCondition = "W0401",
    /// A setting that nothing reads.
    SettingWithoutEffect = "W0402",
    /// A manufactured solution with a kink or a jump inside the domain.
    ManufacturedKink = "W0409",
    /// A velocity without a gradient in its own row, with a discontinuous pressure.
    UnstableForDarcy = "W0410",
}

impl Code {
    /// Returns the code with this id, in any case: `E0203`, `e0203`.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.id().eq_ignore_ascii_case(id))
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_ordered() {
        assert!(Code::ALL.windows(2).all(|pair| pair[0].id() < pair[1].id()));
        assert_eq!(Code::from_id("e0203"), Some(Code::WrongShape));
        assert_eq!(Code::from_id("E9999"), None);
    }

    /// Checks the examples of the page, in a form that multiplies by `a`.
    #[test]
    fn the_page_of_conditions_has_a_wrong_example_that_is_refused() {
        let page = Code::NotACondition.page();
        let examples: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
        let codes = |example: &str| -> Vec<Code> {
            let own = example.trim_start_matches("wf");
            let text = format!("form a {{ field u: scalar; {own} f0[u] = a * u; }}");
            let (_, found) = crate::program::compile(&crate::source::Source::new("page", text));
            found.into_iter().map(|found| found.code).collect()
        };
        assert_eq!(codes(examples[0]), [Code::NotACondition]);
        assert_eq!(codes(examples[1]), []);
    }

    #[test]
    fn each_page_has_its_parts() {
        for code in Code::ALL {
            let page = code.page();
            assert!(page.starts_with(&format!("# {}: ", code.id())), "{code}: title");
            assert!(page.contains("\n\nWrong:\n\n```"), "{code}: wrong example");
            assert!(page.contains("\n\nWhy: "), "{code}: why");
            assert!(page.contains("\n\nRight:\n\n```"), "{code}: right example");
        }
    }
}
