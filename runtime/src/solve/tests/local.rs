//! Solves with static condensation.

use super::*;

/// A linear system in u and s; s is cell-local if its block is regular.
struct Condensable {
    a: Dense,
    rhs: Vector,
}

impl Condensable {
    fn new(a: [f64; 4], solution: [f64; 2]) -> Self {
        let a = Dense { n: 2, entries: a.to_vec() };
        let rhs = Vector::from_slice(&a.product(&solution), Precision::F64);
        Self { a, rhs }
    }
}

impl NonlinearSystem for Condensable {
    fn size(&self) -> usize {
        2
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.a.apply(u, r)?;
        r.axpy(-1.0, &self.rhs);
        Ok(())
    }

    fn linearise(&mut self, _: &Vector) -> Result<(), OperatorError> {
        Ok(())
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        &self.a
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        diagonal.set(&[self.a.entries[0], self.a.entries[3]]);
        Ok(())
    }

    fn symmetric(&self) -> bool {
        true
    }

    fn local(&self) -> Option<Arc<LocalDofs>> {
        Some(Arc::new(LocalDofs {
            dofs: vec![1],
            of_cell: 1,
            clusters: vec![vec![0]],
            products: vec![vec![0]],
            colours: Vec::new(),
            is_read: true,
            symmetric: true,
        }))
    }

    fn coupling(&self) -> Option<Coupling> {
        Some(Coupling::full(2))
    }
}

#[test]
fn factors_follow_a_block_that_becomes_singular() {
    let linear = LinearOptions { solver: InnerSolver::Direct, ..LinearOptions::default() };
    let mut u = Vector::zeros(2, Precision::F64);
    let mut affine = AffineSolver::new(&u, linear);
    for a in [[2.0, 1.0, 1.0, 1.0], [2.0, 1.0, 1.0, 0.0], [2.0, 1.0, 1.0, 3.0]] {
        u.fill(0.0);
        let mut system = Condensable::new(a, [3.0, -2.0]);
        let report = affine.solve(&mut system, &mut u, CgSettings::default(), &mut silent);
        assert!(report.expect("applied").outcome.is_success(), "{a:?}");
        for (found, expected) in u.to_vec().into_iter().zip([3.0, -2.0]) {
            assert!((found - expected).abs() < 1e-12, "{a:?}: {found}");
        }
    }
}

#[test]
fn blocks_that_rounding_hides_are_singular() {
    let local = Condensable::new([1.0; 4], [0.0; 2]).local().expect("one");
    let local =
        LocalDofs { dofs: vec![0, 1], of_cell: 2, clusters: vec![vec![0, 1]], ..(*local).clone() };
    let local = LocalDofs { products: vec![vec![0], vec![1]], ..local };
    let nearly = Dense { n: 2, entries: vec![1.0, 1.0, 1.0, 1.0 + 1e-7] };
    for (precision, regular) in [(Precision::F64, true), (Precision::F32, false)] {
        let like = Vector::zeros(2, precision);
        let inverse = local.invert(&nearly, &like).expect("applied");
        assert_eq!(inverse.is_some(), regular, "{precision:?}");
    }
}
