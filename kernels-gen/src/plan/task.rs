//! [`Task`]: the computation of a kernel.

/// The computation of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// R(u).
    Residual,
    /// J(u) δu.
    Action,
    /// The diagonal of J(u).
    Diagonal,
    /// The coefficients of J(u) at the quadrature points, pulled back to the reference cell and weighted: the input of
    /// [`Linearisation::Stored`](super::Linearisation::Stored).
    Linearise,
    /// J⁻¹ and w |det J| at the quadrature points: the input of [`Geometry::Stored`](super::Geometry::Stored).
    Metric,
    /// The tested values of R(u) at the quadrature points, pulled back to the reference cell and weighted: w |det J| f0
    /// and w |det J| J⁻¹ f1, in the order of [`tested`](super::tested).
    Flux,
    /// The element matrices of J(u): [`CellMatrix`](super::cell_matrix::CellMatrix).
    Matrix,
    /// J(u) δu with the element matrices that [`Task::Matrix`] has stored.
    StoredProduct,
    /// J(u) δu with element matrices that are recomputed and not stored.
    MatrixProduct,
    /// The values of δu at the points, added to the DoFs of a finer space at these points: [`crate::abi::Role::Fine`].
    /// The form only defines the field.
    Prolong,
    /// Its transpose: values of a finer space at the points, tested against the basis functions without a weight.
    Restrict,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 11] = [
        Self::Residual,
        Self::Action,
        Self::Diagonal,
        Self::Linearise,
        Self::Metric,
        Self::Flux,
        Self::Matrix,
        Self::StoredProduct,
        Self::MatrixProduct,
        Self::Prolong,
        Self::Restrict,
    ];

    /// Returns the name of the task in identifiers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Residual => "residual",
            Self::Action => "action",
            Self::Diagonal => "diagonal",
            Self::Linearise => "linearise",
            Self::Metric => "metric",
            Self::Flux => "flux",
            Self::Matrix => "matrix",
            Self::StoredProduct => "stored_product",
            Self::MatrixProduct => "matrix_product",
            Self::Prolong => "prolong",
            Self::Restrict => "restrict",
        }
    }

    /// Returns whether it computes or uses element matrices.
    pub fn is_of_matrices(self) -> bool {
        matches!(self, Self::Matrix | Self::StoredProduct | Self::MatrixProduct)
    }

    /// Returns whether results are stored at the points and nothing is tested.
    pub fn stores(self) -> bool {
        matches!(self, Self::Linearise | Self::Metric | Self::Flux | Self::Prolong)
    }

    /// Returns whether it transfers vectors between spaces, which needs no geometry.
    pub fn transfers(self) -> bool {
        matches!(self, Self::Prolong | Self::Restrict)
    }
}
