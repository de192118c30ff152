//! Singly diagonally implicit Runge-Kutta formulas: one solve per stage, all with the same factor; the last stage is
//! the end of the step.

/// A Runge-Kutta formula.
pub(super) struct Tableau {
    /// Diagonal coefficient.
    pub(super) gamma: f64,
    /// Coefficients of the rates of earlier stages.
    pub(super) rows: Vec<Vec<f64>>,
    /// Stage times relative to the step.
    pub(super) nodes: Vec<f64>,
    /// Weights of the rates minus those of the embedded formula.
    pub(super) error: Vec<f64>,
    /// Order of the embedded formula.
    pub(super) embedded_order: usize,
}

impl Tableau {
    /// Returns the formula of 2, 3 or 4 stages, of order 2, 3 and 3. The first two are Alexander's (1977, SIAM J.
    /// Numer. Anal. 14, section 4); that of four stages has γ = ¼ and satisfies the four conditions of order 3.
    pub(super) fn of(stages: usize) -> Self {
        match stages {
            2 => {
                let gamma = 1.0 - std::f64::consts::FRAC_1_SQRT_2;
                Self::with(gamma, vec![vec![], vec![1.0 - gamma]], &[1.0, 0.0], 1)
            }
            3 => {
                // The root of γ³ − 3 γ² + 3/2 γ − 1/6 = 0 between 1/6 and 1/2.
                let gamma = 0.435_866_521_508_459;
                let first = -(6.0 * gamma * gamma - 16.0 * gamma + 1.0) / 4.0;
                let second = (6.0 * gamma * gamma - 20.0 * gamma + 5.0) / 4.0;
                let rows = vec![vec![], vec![(1.0 - gamma) / 2.0], vec![first, second]];
                let late = (1.0 - 2.0 * gamma) / (1.0 - gamma);
                Self::with(gamma, rows, &[1.0 - late, late, 0.0], 2)
            }
            _ => {
                let rows = vec![
                    vec![],
                    vec![0.5],
                    vec![17.0 / 40.0, -7.0 / 40.0],
                    vec![5.0 / 12.0, -1.0 / 12.0, 5.0 / 12.0],
                ];
                Self::with(0.25, rows, &[0.0, 0.0, 1.0, 0.0], 2)
            }
        }
    }

    fn with(gamma: f64, rows: Vec<Vec<f64>>, lower: &[f64], embedded_order: usize) -> Self {
        let nodes = rows.iter().map(|row| row.iter().sum::<f64>() + gamma).collect();
        let weights = rows.last().into_iter().flatten().copied().chain([gamma]);
        let error = weights.zip(lower).map(|(own, lower)| own - lower).collect();
        Self { gamma, rows, nodes, error, embedded_order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_fulfil_the_conditions_of_their_order() {
        for (stages, order) in [(2, 2), (3, 3), (4, 3)] {
            let Tableau { gamma, rows, nodes, error, embedded_order } = Tableau::of(stages);
            let near = |found: f64, wanted: f64| {
                assert!((found - wanted).abs() < 1e-14, "{stages} stages: {found}, not {wanted}");
            };
            let full: Vec<Vec<f64>> =
                rows.iter().map(|row| row.iter().copied().chain([gamma]).collect()).collect();
            let times = |weights: &[f64], of: &[f64]| -> f64 {
                weights.iter().zip(of).map(|(w, x)| w * x).sum()
            };
            let ones = vec![1.0; stages];
            let squares: Vec<f64> = nodes.iter().map(|c| c * c).collect();
            let again: Vec<f64> = full.iter().map(|row| times(row, &nodes)).collect();
            let last = full.last().expect("stages");
            near(nodes[stages - 1], 1.0);
            near(times(last, &ones), 1.0);
            near(times(last, &nodes), 0.5);
            if order > 2 {
                near(times(last, &squares), 1.0 / 3.0);
                near(times(last, &again), 1.0 / 6.0);
            }
            near(times(&error, &ones), 0.0);
            if embedded_order > 1 {
                near(times(&error, &nodes), 0.0);
            }
        }
    }
}
