//! Random forms with several fields in continuous and discontinuous spaces, checked in three ways. They include
//! boundary integrals, data, parameters and constraints, on meshes that may be periodic or have hanging nodes. The
//! operators run interpreted kernels and are compared with the reference implementation.
//!
//! ```text
//! residual, action, diagonal               within rounding of the reference's
//! (R(u + ε w) − R(u − ε w)) / 2ε − J w     = O(ε²) for smooth forms
//! (E(u + ε w) − E(u − ε w)) / 2ε − R·w     = O(ε²) for derivatives of an energy
//! ```
//!
//! The tests draw 400 forms, 60 with integrals between cells, and 24 with second derivatives. `WF_FORMS=N` in the environment adds N more, and `WF_SEED=S` selects other forms.

#[path = "random_forms/case.rs"]
mod case;
#[path = "random_forms/meshes.rs"]
mod meshes;
#[path = "random_forms/rotations.rs"]
mod rotations;

use case::Case;
use runtime::mesh::pairs::FacetConnectivity;
use runtime::mesh::views::FacetViews;
use runtime::space::discretisation::matched_pairs;

/// Number of forms of each of the four tests, which run in parallel.
const FORMS: u64 = 100;

/// Number of forms of each of the two tests with integrals between cells.
const BETWEEN: u64 = 30;

/// Number of forms with integrals between cells and vector-valued functions.
const VECTORS_BETWEEN: u64 = 4;

/// Number of forms with integrals between cells by groups of threads.
const SHARED: u64 = 12;

/// Number of forms with fields in Hcurl and Hdiv.
const VECTORS: u64 = 40;

/// Number of forms with second derivatives.
const SECOND: u64 = 16;

/// Statistics of the tested forms.
#[derive(Default)]
struct Seen {
    forms: u64,
    fields: usize,
    several: u64,
    jumping: u64,
    boundary: u64,
    threads: u64,
    tangents: u64,
    energies: u64,
    /// Forms on meshes with facets that their cells see in different orientations.
    turned: u64,
    /// Forms on meshes on which cells of different size meet.
    hanging: u64,
    shared: u64,
    /// Forms on curved cells in space.
    curved: u64,
}

impl Seen {
    /// Compares the operator and the matrix of a case, and its Jacobian with differences.
    fn compare(&mut self, case: &Case) {
        let (mut operator, by_threads) = case.operator();
        self.threads += u64::from(by_threads);
        case.compare(&mut operator);
        if case.has_small_matrix() {
            case.compare_matrix(&mut operator);
        }
        self.tangents += u64::from(case.taylor(&mut operator));
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|value| value.parse().ok())
}

/// Tests every fourth form, starting with number `part`.
fn quarter(part: u64) {
    let first = number("WF_SEED").unwrap_or(0) + part;
    let more = number("WF_FORMS").unwrap_or(0).div_ceil(4);
    let mut seen = Seen::default();
    for seed in (0..FORMS + more).map(|i| first + 4 * i) {
        let case = Case::new(seed);
        seen.forms += 1;
        seen.fields += case.form.fields.len();
        seen.several += u64::from(case.form.fields.len() > 1);
        seen.jumping += u64::from(!case.elements.are_continuous());
        seen.boundary += u64::from(case.form.integrals.len() > 1);
        let (mut operator, by_threads) = case.operator();
        case.compare(&mut operator);
        seen.threads += u64::from(by_threads);
        seen.tangents += u64::from(case.taylor(&mut operator));
        seen.energies += u64::from(case.energy());
    }
    let Seen { forms, fields, several, jumping, boundary, threads, tangents, energies, .. } = seen;
    println!(
        "{forms} forms with {fields} fields: {several} with several, {jumping} with discontinuous ones, {boundary} \
         with integrals over the boundary, {threads} by groups of threads; {tangents} Jacobians and {energies} \
         energies against differences"
    );
    let enough = [several, jumping, boundary, tangents].iter().all(|&count| 4 * count > forms);
    assert!(enough && 20 * threads > forms && 20 * energies > forms);
}

/// Tests every second form with integrals between cells, starting with number `part`.
fn half_between_cells(part: u64) {
    let first = number("WF_SEED").unwrap_or(0) + part;
    let more = number("WF_FORMS").unwrap_or(0).div_ceil(2);
    let mut seen = Seen::default();
    for seed in (0..BETWEEN + more).map(|i| first + 2 * i) {
        let case = Case::between(seed);
        seen.forms += 1;
        seen.several += u64::from(case.form.fields.len() > 1);
        seen.jumping += u64::from(!case.elements.are_continuous());
        seen.turned += u64::from(case.is_turned());
        seen.hanging += u64::from(case.hangs());
        seen.shared += u64::from(case.hangs() && case.joins_continuous());
        seen.curved += u64::from(case.is_curved_in_space());
        seen.compare(&case);
    }
    let Seen { forms, several, jumping, threads, tangents, turned, hanging, .. } = seen;
    let Seen { shared, curved, .. } = seen;
    println!(
        "{forms} forms: {several} with several fields, {jumping} with discontinuous ones, {turned} on turned cells, \
         {curved} on curved ones in space, {hanging} on cells of different size, of which {shared} with terms of \
         continuous fields, {threads} by groups of threads"
    );
    // A fifth in single precision.
    assert!(4 * several > forms && 2 * jumping > forms && 3 * tangents > 2 * forms);
    assert!(2 * turned > forms && 5 * hanging > forms, "{turned} {hanging}");
    assert!(20 * shared > forms && 20 * curved > forms, "{shared} {curved}");
}

/// Forms with integrals between cells by groups of threads that share a pair.
#[test]
fn groups_of_threads_agree_between_cells() {
    let first = number("WF_SEED").unwrap_or(0);
    let count = (SHARED + number("WF_FORMS").unwrap_or(0)) as usize;
    let mut seen = Seen::default();
    for seed in (first..).filter(|&seed| case::is_tensor(seed)).take(count) {
        let case = Case::at_points(seed);
        seen.forms += 1;
        seen.turned += u64::from(case.is_turned());
        seen.hanging += u64::from(case.hangs());
        let (mut operator, by_threads) = case.operator();
        seen.threads += u64::from(by_threads);
        case.compare(&mut operator);
    }
    let Seen { forms, threads, turned, hanging, .. } = seen;
    println!(
        "{forms} forms: {turned} on turned cells, {hanging} on cells of different size, {threads} by groups of threads"
    );
    assert!(2 * threads > forms && 2 * turned > forms && 4 * hanging > forms);
}

/// Forms with second derivatives, on cells of all kinds.
#[test]
fn second_derivatives_agree() {
    let first = number("WF_SEED").unwrap_or(0);
    let mut seen = Seen::default();
    for seed in (0..SECOND + number("WF_FORMS").unwrap_or(0)).map(|i| first + i) {
        let case = Case::second(seed);
        seen.forms += 1;
        seen.jumping += u64::from(!case.elements.are_continuous());
        seen.boundary += u64::from(case.form.integrals.len() > 1);
        seen.compare(&case);
        seen.energies += u64::from(case.energy());
    }
    let Seen { forms, jumping, boundary, tangents, energies, .. } = seen;
    println!(
        "{forms} forms: {jumping} with discontinuous fields, {boundary} on facets, {energies} energies"
    );
    assert!(3 * jumping > forms && 2 * boundary > forms && 2 * tangents > forms);
}

/// Forms with fields in Hcurl and Hdiv, on cells of all kinds.
#[test]
fn vectors_agree() {
    let first = number("WF_SEED").unwrap_or(0);
    let mut seen = Seen::default();
    for seed in (0..VECTORS + number("WF_FORMS").unwrap_or(0)).map(|i| first + i) {
        let case = Case::vectors(seed);
        seen.forms += 1;
        seen.several += u64::from(case.form.fields.len() > 1);
        seen.boundary += u64::from(case.form.integrals.len() > 1);
        seen.turned += u64::from(case.is_turned());
        seen.hanging += u64::from(case.hangs());
        seen.compare(&case);
    }
    let Seen { forms, several, boundary, turned, hanging, threads, tangents, .. } = seen;
    println!(
        "{forms} forms: {several} with several fields, {boundary} on the boundary, {turned} on turned cells, {hanging} \
         on cells of different size, {threads} by groups of threads, {tangents} Jacobians against differences"
    );
    assert!(
        20 * hanging > forms && 2 * several > forms && 4 * boundary > forms && 2 * turned > forms
    );
    assert!(20 * threads > forms && tangents == forms);
}

/// Forms with integrals between cells and a field in Hcurl or Hdiv, whose gradients occur, on cells of all kinds.
#[test]
fn vectors_agree_between_cells() {
    let first = number("WF_SEED").unwrap_or(0);
    let mut seen = Seen::default();
    for seed in (0..VECTORS_BETWEEN + number("WF_FORMS").unwrap_or(0)).map(|i| first + i) {
        let case = Case::vectors_between(seed);
        seen.forms += 1;
        seen.several += u64::from(case.form.fields.len() > 1);
        seen.turned += u64::from(case.is_turned());
        seen.hanging += u64::from(case.hangs());
        seen.compare(&case);
        seen.energies += u64::from(case.energy());
    }
    let Seen { forms, several, turned, hanging, tangents, energies, .. } = seen;
    println!(
        "{forms} forms: {several} with several fields, {turned} on turned cells, {hanging} on cells of different size, \
         {energies} energies"
    );
    assert!(4 * several > forms && 2 * turned > forms && 10 * hanging > forms);
    assert!(2 * tangents > forms);
}

/// Forms with integrals between cells on devices, by each algorithm of summation.
#[test]
fn devices_agree_between_cells() {
    use kernels_gen::plan::Scatter;
    let scatters = [Scatter::Atomic, Scatter::Coloured, Scatter::Owner];
    let shared = kernels_gen::plan::Strategy::ThreadPerLine { cells: 1 };
    let first = number("WF_SEED").unwrap_or(0);
    // Forms of each kind for each device.
    let count = number("WF_FORMS").unwrap_or(3) as usize;
    for device in super::devices::devices() {
        // PoCL takes ten seconds and more for an optimised kernel of hexahedra.
        let (device, is_slow) = match device.name().contains("Portable Computing Language") {
            true => {
                let device = runtime::device::opencl::OpenCl::new().expect("the same device");
                (std::sync::Arc::new(device.unoptimised()) as _, true)
            }
            _ => (device, false),
        };
        let seeds = (first..).filter(|&seed| !is_slow || case::is_planar(seed));
        for (seed, scatter) in seeds.take(count).zip(scatters.into_iter().cycle()) {
            let case = Case::between(seed);
            case.compare(&mut case.on_device(&device, scatter, None));
        }
        let seeds = (first..).filter(|&seed| !is_slow || case::is_planar(seed));
        for (seed, scatter) in seeds.take(count).zip(scatters.into_iter().cycle()) {
            let case = Case::second(seed);
            case.compare(&mut case.on_device(&device, scatter, None));
        }
        let seeds = (first..).filter(|&seed| case::is_tensor(seed));
        let seeds = seeds.filter(|&seed| !is_slow || case::is_planar(seed));
        for (seed, scatter) in seeds.take(count).zip(scatters.into_iter().cycle()) {
            let case = Case::at_points(seed);
            case.compare(&mut case.on_device(&device, scatter, Some(shared)));
        }
    }
}

/// The reference finds the neighbours that the connectivity of a mesh has, with the smaller cell as the inside.
#[test]
fn neighbours_by_their_places_are_those_of_the_connectivity() {
    for (name, mesh) in meshes::all_meshes() {
        let views = FacetViews::new(mesh.cell());
        let all = FacetConnectivity::new(&mesh, &views).pairs.into_iter();
        let mut wanted: Vec<[(usize, usize); 2]> = all
            .map(|pair| pair.sides.map(|side| (side.cell as usize, usize::from(side.local))))
            .collect();
        wanted.sort_unstable();
        let found = matched_pairs(&mesh).expect("tags of the mesh");
        let found: Vec<[(usize, usize); 2]> = found.iter().map(|pair| pair.sides).collect();
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn the_first_half_between_cells_agrees() {
    half_between_cells(0);
}

#[test]
fn the_other_half_between_cells_agrees() {
    half_between_cells(1);
}

#[test]
fn the_first_quarter_agrees() {
    quarter(0);
}

#[test]
fn the_second_quarter_agrees() {
    quarter(1);
}

#[test]
fn the_third_quarter_agrees() {
    quarter(2);
}

#[test]
fn the_last_quarter_agrees() {
    quarter(3);
}
