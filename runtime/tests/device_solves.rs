//! Conjugate gradients on a device, in batches of iterations, against the host: the same iterations and outcome, for
//! any stopping reason at any position in a batch.
//!
//! The operators are diagonal except for injected faults, so that both results agree up to rounding.

use super::devices;
use devices::devices;
use runtime::algebra::vector::{Precision, Vector};
use runtime::device::{Arithmetic, Backend, Device};
use runtime::solve::{
    CgSettings, Continue, LinearOperator, OperatorError, Outcome, Preconditioner, Progress, Report,
    cg, silent,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Origin of vectors: the host or a device.
#[derive(Clone)]
enum Place {
    Host(Precision),
    Device(Arc<Arithmetic>),
}

impl Place {
    fn on(device: &Arc<dyn Device>, precision: Precision) -> Self {
        Self::Device(Arithmetic::new(Arc::clone(device), precision).expect("kernels"))
    }

    fn vector(&self, entries: &[f64]) -> Vector {
        match self {
            Self::Host(precision) => Vector::from_slice(entries, *precision),
            Self::Device(arithmetic) => {
                let mut vector = Vector::on_device(entries.len(), arithmetic);
                vector.set(entries);
                vector
            }
        }
    }
}

/// The operator y = D x, which fails after some applications.
struct Diagonal {
    diagonal: Vector,
    /// A vector that grows with each application and is added with factor 0: finite until it overflows.
    fuse: Option<Mutex<Vector>>,
    replayable: bool,
    asked: AtomicUsize,
}

impl LinearOperator for Diagonal {
    fn size(&self) -> usize {
        self.diagonal.len()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        y.copy_from(x);
        y.multiply(&self.diagonal);
        if let Some(fuse) = &self.fuse {
            let mut fuse = fuse.lock().unwrap_or_else(PoisonError::into_inner);
            fuse.scale(1e20);
            y.axpy(0.0, &fuse);
        }
        Ok(())
    }

    fn replayable(&self) -> bool {
        self.replayable
    }
}

/// Preconditioner of the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Inverse {
    Identity,
    Jacobi,
    Operator,
}

/// A system with solver settings.
#[derive(Clone)]
struct Case {
    diagonal: Vec<f64>,
    /// The diagonal of M⁻¹.
    inverse: Vec<f64>,
    b: Vec<f64>,
    fuse: bool,
    settings: CgSettings,
    /// The iteration at which the observer cancels.
    cancelled: usize,
}

/// The outcome, the solution, the observed progress, and the number of operator calls.
struct Solved {
    report: Report,
    x: Vec<f64>,
    seen: Vec<Progress>,
    asked: usize,
}

impl Case {
    /// Creates a positive definite system with eigenvalues between 1 and `most`; M halves the spread.
    fn new(n: usize, most: f64) -> Self {
        let part = |i: usize| (i * 7919 % n) as f64 / (n - 1) as f64;
        Self {
            diagonal: (0..n).map(|i| most.powf(part(i))).collect(),
            inverse: (0..n).map(|i| most.powf(-0.5 * part(i))).collect(),
            b: (0..n).map(|i| (1.3 * i as f64).sin() + 0.2).collect(),
            fuse: false,
            settings: CgSettings { rtol: 1e-6, ..CgSettings::default() },
            cancelled: usize::MAX,
        }
    }

    fn solve(&self, place: &Place, inverse: Inverse, replayable: bool) -> Solved {
        let operator = |entries: &[f64], fuse: bool| Diagonal {
            diagonal: place.vector(entries),
            fuse: fuse.then(|| Mutex::new(place.vector(&vec![1.0; entries.len()]))),
            replayable,
            asked: AtomicUsize::new(0),
        };
        let (a, m) = (operator(&self.diagonal, self.fuse), operator(&self.inverse, false));
        let b = place.vector(&self.b);
        let mut x = b.like();
        let mut seen = Vec::new();
        let preconditioner = match inverse {
            Inverse::Identity => Preconditioner::Identity,
            Inverse::Jacobi => Preconditioner::Jacobi(&m.diagonal),
            Inverse::Operator => Preconditioner::Operator(&m),
        };
        let report = cg(&a, &b, &mut x, preconditioner, self.settings, &mut |progress| {
            seen.push(progress);
            if progress.iteration == self.cancelled { Continue::No } else { Continue::Yes }
        });
        let asked = a.asked.load(Ordering::Relaxed) + m.asked.load(Ordering::Relaxed);
        Solved { report: report.expect("applies"), x: x.to_vec(), seen, asked }
    }

    /// Solves on the host, and on every device singly and in batches; returns the report of the host.
    fn compare(&self, what: &str, inverse: Inverse, tolerance: f64) -> Report {
        let host = self.solve(&Place::Host(Precision::F64), inverse, true);
        for device in devices() {
            let place = Place::on(&device, Precision::F64);
            let single = self.solve(&place, inverse, false);
            let batches = self.solve(&place, inverse, true);
            let what = format!("{what}, {inverse:?} on {device:?}");
            single.agrees(&host, &format!("{what}, one at a time"), tolerance);
            batches.agrees(&host, &format!("{what}, in batches"), tolerance);
            if inverse == Inverse::Jacobi {
                // All sums and entries are computed in the same way.
                batches.agrees(&single, &format!("{what}, in batches or not"), tolerance * 1e-6);
            }
        }
        host.report
    }
}

impl Solved {
    fn agrees(&self, host: &Self, what: &str, tolerance: f64) {
        let (here, there) = (&self.report, &host.report);
        assert_eq!(here.iterations, there.iterations, "{what}: {here:?}\n{there:?}");
        assert_eq!(here.history.len(), here.iterations + 1, "{what}");
        let same = match (here.outcome, there.outcome) {
            (Outcome::Indefinite { curvature: a }, Outcome::Indefinite { curvature: b }) => {
                (a - b).abs() <= tolerance * b.abs()
            }
            (a, b) => a == b,
        };
        assert!(same, "{what}: {:?} and {:?}", here.outcome, there.outcome);
        for (i, (a, b)) in here.history.iter().zip(&there.history).enumerate() {
            // Rounding errors of a residual remain while it decreases.
            let size = b.max(1e-3 * there.history[0]);
            let close = (a - b).abs() <= tolerance * size || (a.is_nan() && b.is_nan());
            assert!(close, "{what}: {a:e} and {b:e} after {i} iterations");
        }
        let seen = self.seen.iter().map(|progress| (progress.iteration, progress.residual));
        let expected = host.seen.len();
        assert!(seen.eq((1..=expected).map(|i| (i, here.history[i]))), "{what}: {:?}", self.seen);
        if there.outcome != Outcome::Cancelled && there.outcome != Outcome::NotFinite {
            let scale = host.x.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            for (a, b) in self.x.iter().zip(&host.x) {
                assert!((a - b).abs() <= tolerance * scale, "{what}: {a} and {b}");
            }
        }
    }
}

const INVERSES: [Inverse; 3] = [Inverse::Identity, Inverse::Jacobi, Inverse::Operator];

#[test]
fn solves_take_the_iterations_of_the_hosts() {
    for inverse in INVERSES {
        for (n, most, least) in [(70, 10.0, 8), (300, 100.0, 15), (5003, 200.0, 20)] {
            let report = Case::new(n, most).compare("definite", inverse, 1e-6);
            assert_eq!(report.outcome, Outcome::Converged);
            assert!(report.iterations >= least, "{}", report.iterations);
        }
    }
}

/// A small negative eigenvalue among positive ones, which the method meets after some iterations.
#[test]
fn directions_without_curvature_end_a_batch() {
    let mut case = Case::new(301, 100.0);
    (case.diagonal[150], case.b[150]) = (-0.02, 1e-3);
    for inverse in INVERSES {
        let report = case.compare("indefinite", inverse, 1e-5);
        assert!(matches!(report.outcome, Outcome::Indefinite { .. }), "{:?}", report.outcome);
        assert!(report.iterations >= 5, "{}", report.iterations);
    }
    // An indefinite preconditioner.
    case = Case::new(301, 100.0);
    (case.inverse[150], case.b[150]) = (-1.0, 1e-2);
    for inverse in [Inverse::Jacobi, Inverse::Operator] {
        let report = case.compare("indefinite inverse", inverse, 1e-5);
        assert!(matches!(report.outcome, Outcome::Indefinite { .. }), "{:?}", report.outcome);
        assert!(report.iterations >= 5, "{}", report.iterations);
    }
}

#[test]
fn what_is_not_a_number_ends_a_batch() {
    let mut case = Case::new(300, 100.0);
    case.fuse = true;
    for inverse in INVERSES {
        let report = case.compare("overflow", inverse, 1e-7);
        assert_eq!(report.outcome, Outcome::NotFinite);
        assert!(report.iterations >= 10, "{}", report.iterations);
    }
    case = Case::new(300, 100.0);
    case.diagonal[3] = f64::NAN;
    assert_eq!(case.compare("NaN", Inverse::Identity, 1e-7).outcome, Outcome::NotFinite);
    case = Case::new(300, 100.0);
    case.inverse[3] = f64::NAN;
    for inverse in [Inverse::Jacobi, Inverse::Operator] {
        assert_eq!(case.compare("NaN", inverse, 1e-7).outcome, Outcome::NotFinite);
    }
}

#[test]
fn limits_hold_within_batches() {
    for limit in [1, 2, 5, 13, 22] {
        let mut case = Case::new(300, 1000.0);
        case.settings.max_iterations = limit;
        for inverse in INVERSES {
            let report = case.compare("limited", inverse, 1e-7);
            assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, limit));
        }
    }
}

#[test]
fn observers_stop_batches() {
    for cancelled in [1, 5, 12] {
        let case = Case { cancelled, ..Case::new(300, 1000.0) };
        for inverse in INVERSES {
            let report = case.compare("cancelled", inverse, 1e-7);
            assert_eq!((report.outcome, report.iterations), (Outcome::Cancelled, cancelled));
        }
    }
}

/// Near the precision, the true residual decides, and the method restarts from it.
#[test]
fn true_residuals_are_verified_between_batches() {
    for device in devices() {
        for inverse in INVERSES {
            let mut case = Case::new(300, 100.0);
            case.settings.rtol = 3e-16;
            let place = Place::on(&device, Precision::F64);
            let solved = case.solve(&place, inverse, true);
            let Report { outcome, target, .. } = solved.report;
            assert!([Outcome::Converged, Outcome::Rounding].contains(&outcome), "{outcome:?}");
            // The last entry of the history is the true residual.
            let residuals = case.diagonal.iter().zip(&solved.x).zip(&case.b);
            let norm = residuals.map(|((d, x), b)| (b - d * x).powi(2)).sum::<f64>().sqrt();
            let last = solved.report.history[solved.report.iterations];
            assert!((norm - last).abs() <= 0.5 * last, "{norm:e} and {last:e}");
            assert_eq!(outcome == Outcome::Converged, last <= target);
            assert!(last <= 1e-14 * 300.0, "{last:e}");
        }
        let mut case = Case::new(300, 100.0);
        let place = Place::on(&device, Precision::F32);
        for (rtol, outcome) in [(1e-5, Outcome::Converged), (1e-14, Outcome::Rounding)] {
            case.settings.rtol = rtol;
            let solved = case.solve(&place, Inverse::Jacobi, true);
            assert_eq!(solved.report.outcome, outcome);
        }
    }
}

/// There are few superfluous iterations, and few that the host enqueues one by one.
#[test]
fn batches_end_soon_after_the_solve() {
    for device in devices() {
        let case = Case::new(5003, 1e5);
        let solved = case.solve(&Place::on(&device, Precision::F64), Inverse::Jacobi, true);
        let done = solved.report.iterations;
        assert!(solved.asked <= 2 * done + 2, "{} for {done}", solved.asked);
    }
}

/// Errors of a device operator are reported.
#[test]
fn failures_end_a_solve_with_what_went_wrong() {
    for device in devices() {
        let place = Place::on(&device, Precision::F64);
        let Place::Device(arithmetic) = &place else { continue };
        let b = place.vector(&[1.0; 100]);
        let mut x = b.like();
        let lost = Diagonal {
            diagonal: Vector::on_device(1 << 50, arithmetic),
            fuse: None,
            replayable: true,
            asked: AtomicUsize::new(0),
        };
        let settings = CgSettings::default();
        let solved = cg(&lost, &b, &mut x, Preconditioner::Identity, settings, &mut silent);
        let failed = match solved {
            Ok(report) => report.outcome == Outcome::NotFinite,
            Err(error) => error.to_string().contains("no room"),
        };
        assert!(failed && arithmetic.check().is_err());
    }
}

/// Recorded work runs only on replay; without a recording nothing runs.
#[test]
fn recordings_repeat_what_was_asked_for() {
    for device in devices() {
        let arithmetic = Arithmetic::new(Arc::clone(&device), Precision::F64).expect("kernels");
        let place = Place::Device(Arc::clone(&arithmetic));
        let (mut x, mut y) = (place.vector(&[1.0; 1000]), place.vector(&[1.0; 1000]));
        let recording = device.record(&mut || {
            let array = y.array_mut().ok_or("a device's")?;
            device.clear(array)?;
            x.scale(2.0);
            y.axpy(1.0, &x);
            Ok(())
        });
        let recording = recording.expect("a driver that works");
        assert_eq!((x.get(999), y.get(999)), (1.0, 1.0));
        // Failing work and work that cannot be recorded leave no recording and no trace.
        let failed = device.record(&mut || Err("it fails".into()));
        assert!(failed.expect("a driver that works").is_none());
        let read = device.record(&mut || Ok(device.synchronise()?));
        assert!(read.expect("a driver that works").is_none());
        let Some(recording) = recording else {
            assert_ne!(device.backend(), Backend::Cuda, "CUDA records");
            continue;
        };
        for times in 1..=3 {
            device.replay(&recording).expect("replays");
            let power = f64::from(1 << times);
            assert_eq!((x.get(999), y.get(0)), (power, power));
        }
        // The recording keeps its arrays alive.
        drop((x, y));
        device.replay(&recording).expect("replays");
        device.synchronise().expect("no failure");
        arithmetic.check().expect("no failure");
    }
}
