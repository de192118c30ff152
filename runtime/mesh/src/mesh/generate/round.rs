//! `ball`, `shell` and `lshape`.
//!
//! The computational domain of `ball` is the cube [−1, 1]^d: a central cube of half that width and one block on each of
//! its sides (5 quadrilaterals, 7 hexahedra). With ρ = max |q_i| and c = q/ρ on the cube's surface, the map is
//!
//! ```text
//! x(q) = 2 a q / √d                                            where ρ ≤ 1/2
//! x(q) = (1 − s) a c / √d + s τ(c)/|τ(c)|,  s = 2ρ − 1         elsewhere
//! ```
//!
//! with τ(c)_i = tan(π c_i / 4), which spaces the lines on the sphere evenly. With a = 1/(1 + √d) the central cube's
//! cells are about as large as the others (the coarse vertices are those of deal.II's `hyper_ball`). `shell` has the
//! outer blocks only, with radii from `inner` to `outer`. Every vertex and every geometry node on the boundary lies on
//! its sphere; the map is smooth within each block, so that isoparametric cells keep their order.
//!
//! `lshape` is [−1, 1]^d without [0, 1]^d: the corner at the origin has the opening angle 3π/2, in
//! three dimensions it is the corner of Fichera.

use super::GenerateError;
use super::arguments::GeneratorArguments;
use super::blocks::{Blocks, CellOrder, Refinement};
use super::domain_map::DomainMap;
use crate::mesh::{Cell, EntityCounts, Mesh};

/// Refinements beyond this give more cells than 32-bit indices can number.
const MOST_REFINED: usize = 14;

/// Returns the numbers of entities of the mesh of a generator.
pub(super) fn count(
    name: &str,
    arguments: &GeneratorArguments<'_>,
) -> Result<EntityCounts, GenerateError> {
    let (refined, blocks) = of(name, arguments)?;
    blocks.counts(refined).map_err(|error| arguments.mesh(error))
}

/// Checks that 32-bit indices can number the entities of that mesh.
pub(super) fn check(name: &str, arguments: &GeneratorArguments<'_>) -> Result<(), GenerateError> {
    let (refined, blocks) = of(name, arguments)?;
    blocks.check(refined).map_err(|error| arguments.mesh(error))
}

/// Returns the blocks of a generator, and their refinement.
fn of(
    name: &str,
    arguments: &GeneratorArguments<'_>,
) -> Result<(Refinement, Blocks), GenerateError> {
    Ok(match name {
        "lshape" => {
            let refined = refined(arguments, 2, 3)?;
            (refined, corner_blocks(refined.cell.dim()))
        }
        "shell" => {
            radii(arguments)?;
            let refined = refined(arguments, 3, 2)?;
            (refined, cube_blocks(refined.cell.dim(), false))
        }
        _ => {
            let refined = refined(arguments, 3, 3)?;
            (refined, cube_blocks(refined.cell.dim(), true))
        }
    })
}

/// Returns the mesh of a generator.
pub(super) fn generate(
    name: &str,
    arguments: &GeneratorArguments<'_>,
) -> Result<Mesh, GenerateError> {
    let (refined, blocks) = of(name, arguments)?;
    let world = world(name, arguments, refined.cell.dim())?;
    let mesh = blocks.mesh(refined, |q| world.place(q), CellOrder::Bricks);
    let mut mesh = mesh.map_err(|error| arguments.mesh(error))?;
    finish(&world, &mut mesh);
    Ok(mesh)
}

/// Returns a mesh whose blocks are refined `times` times less, along a space-filling curve, with its computational
/// domain.
pub(super) fn coarse(
    name: &str,
    arguments: &GeneratorArguments<'_>,
    times: usize,
) -> Result<Mesh, GenerateError> {
    let (mut refined, blocks) = of(name, arguments)?;
    refined.refine -= times;
    let world = world(name, arguments, refined.cell.dim())?;
    let mesh = blocks.mesh(refined, |q| q, CellOrder::Curve);
    let mut mesh = mesh.map_err(|error| arguments.mesh(error))?;
    mesh.place_by(world.clone());
    finish(&world, &mut mesh);
    Ok(mesh)
}

/// Returns the centre of each cell in the computational domain.
pub(super) fn centres(
    name: &str,
    arguments: &GeneratorArguments<'_>,
) -> Result<Vec<[f64; 3]>, GenerateError> {
    let (refined, blocks) = of(name, arguments)?;
    blocks.centres(refined).map_err(|error| arguments.mesh(error))
}

fn world(
    name: &str,
    arguments: &GeneratorArguments<'_>,
    dim: usize,
) -> Result<DomainMap, GenerateError> {
    Ok(match name {
        "lshape" => DomainMap::Corner,
        "shell" => {
            let (inner, outer) = radii(arguments)?;
            DomainMap::Shell { dim, inner, outer }
        }
        _ => DomainMap::Ball { dim },
    })
}

/// Adds boundary tags and spheres.
fn finish(world: &DomainMap, mesh: &mut Mesh) {
    match *world {
        DomainMap::Ball { .. } => {
            mesh.tag_boundary("surface", |_| true);
            mesh.spheres = vec![("surface".to_owned(), 1.0)];
        }
        DomainMap::Shell { inner, outer, .. } => {
            // The mean radius separates the spheres: every boundary vertex lies on one of them.
            let middle = (inner + outer) / 2.0;
            let norm = |x: &[f64; 3]| x.iter().map(|c| c * c).sum::<f64>().sqrt();
            mesh.tag_boundary("inner", |facet| facet.iter().all(|x| norm(x) < middle));
            mesh.tag_boundary("outer", |facet| facet.iter().all(|x| norm(x) > middle));
            mesh.spheres = vec![("inner".to_owned(), inner), ("outer".to_owned(), outer)];
        }
        DomainMap::Corner | DomainMap::Box(_) => {
            mesh.tag_boundary("boundary", |_| true);
        }
    }
}

/// Returns the radii of a shell.
fn radii(arguments: &GeneratorArguments<'_>) -> Result<(f64, f64), GenerateError> {
    let inner = arguments.number("inner", 0.5)?;
    if inner <= 0.0 {
        return Err(arguments.wrong("inner", "a radius greater than 0"));
    }
    let outer = arguments.number("outer", 1.0)?;
    if outer <= inner {
        let expected = format!("a radius greater than the inner one, {inner}");
        return Err(arguments.wrong("outer", expected));
    }
    Ok((inner, outer))
}

/// Returns the cube [−1, 1]^d without [0, 1]^d as blocks of width 1.
fn corner_blocks(dim: usize) -> Blocks {
    let cell = tensor(dim);
    let points = (0..3usize.pow(dim as u32))
        .map(|i| [i % 3, i / 3 % 3, i / 9].map(|place| place as f64 - 1.0))
        .map(|p| [p[0], p[1], if dim == 3 { p[2] } else { 0.0 }])
        .collect();
    let corner = |bits: usize| [1, 3, 9].iter().enumerate().map(|(a, s)| (bits >> a & 1) * s).sum();
    let mut nodes = Vec::new();
    for block in 0..(1 << dim) - 1 {
        let start: usize = corner(block);
        nodes.extend((0..cell.vertex_count()).map(|v| (start + corner(v)) as u32));
    }
    Blocks { cell, points, nodes }
}

fn refined(
    arguments: &GeneratorArguments<'_>,
    default_dim: usize,
    default_refine: usize,
) -> Result<Refinement, GenerateError> {
    let cell = arguments.cell(default_dim)?;
    let refine = arguments.count("refine", 0, MOST_REFINED, default_refine)?;
    let most = if cell.is_tensor() { 12 } else { 4 };
    let order = arguments.count("order", 1, most, 1)?;
    Ok(Refinement { refine, order, cell })
}

fn tensor(dim: usize) -> Cell {
    if dim == 2 { Cell::Quadrilateral } else { Cell::Hexahedron }
}

/// Returns the cube [−1, 1]^d as one block on each side of a central block of half its width. `centre` includes the
/// central block.
fn cube_blocks(dim: usize, centre: bool) -> Blocks {
    let cell = tensor(dim);
    let n = cell.vertex_count();
    let points = (0..2 * n)
        .map(|i| {
            let width = if i < n { 0.5 } else { 1.0 };
            cell.vertex(i % n).map(|x| width * (2.0 * x - 1.0))
        })
        .map(|p| [p[0], p[1], if dim == 3 { p[2] } else { 0.0 }])
        .collect();
    let mut nodes: Vec<u32> = if centre { (0..n as u32).collect() } else { Vec::new() };
    for axis in 0..dim {
        for side in 0..2 {
            nodes.extend((0..n).map(|v| {
                let outer = (v >> axis & 1) == side;
                let corner = v & !(1 << axis) | side << axis;
                (corner + if outer { n } else { 0 }) as u32
            }));
        }
    }
    Blocks { cell, points, nodes }
}
