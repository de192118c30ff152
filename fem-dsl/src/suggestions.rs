//! Notations of other programs, and their equivalents in this language: names, functions, solvers, items.
//!
//! A notation that the language adopts later moves from here to its grammar or its tables, and the tests for "not there
//! yet" are inverted.

/// Returns the equivalent of a function that does not exist.
pub(crate) fn function(name: &str) -> Option<&'static str> {
    Some(match name {
        "trace" => "write `tr(A)`",
        "re" | "im" | "conj" | "real" | "imag" | "conjugate" | "Re" | "Im" => COMPLEX,
        "laplacian" | "laplace" | "lap" | "delta" | "Delta" | "Laplacian" => {
            "for −Δu write `f1[u] = grad(u);`, by parts; in a cell it is `-div(grad(u))`"
        }
        "nabla" | "gradient" | "nabla_grad" | "Grad" => "write `grad(u)`",
        "divergence" | "nabla_div" | "Div" => "write `div(u)`",
        "rot" | "rotation" => "write `curl(u)`",
        "epsilon" | "eps" | "varepsilon" | "strain" | "symgrad" | "sym_grad"
        | "symmetric_gradient" => "write `sym(grad(u))`",
        "dx" | "dy" | "dz" | "Dx" | "diff" => {
            "write `grad(u)[0]`: the derivative of a scalar by x[0], or `grad(u)[i, j]` of u[i] by x[j]"
        }
        "determinant" => "write `det(A)`",
        "inverse" => "write `inv(A)`",
        "cofac" | "cofactor" => "write `cof(A)`",
        "deviatoric" | "deviator" => "write `dev(A)`",
        "dyad" | "tensor_product" | "kron" => "write `outer(a, b)`",
        "ddot" | "double_dot" | "contract" => "write `inner(A, B)`",
        "mag" | "magnitude" => "write `norm(a)`",
        "ln" => "write `log(a)`: it is the natural logarithm",
        "log10" => "write `log(a) / log(10)`",
        "log2" => "write `log(a) / log(2)`",
        "log1p" => "write `log(1 + a)`",
        "expm1" => "write `exp(a) - 1`",
        "exp2" => "write `2^a`",
        "pow" | "power" => "write `a^b`",
        "sqr" | "square" => "write `a^2`",
        "cbrt" => "write `a^(1 / 3)`, for a above 0",
        "hypot" => "write `sqrt(a^2 + b^2)`",
        "coth" => "write `cosh(a) / sinh(a)`",
        "sech" => "write `1 / cosh(a)`",
        "csch" => "write `1 / sinh(a)`",
        "cot" | "ctg" => "write `cos(a) / sin(a)`",
        "tg" => "write `tan(a)`",
        "sec" => "write `1 / cos(a)`",
        "csc" | "cosec" => "write `1 / sin(a)`",
        "arcsin" => "write `asin(a)`",
        "arccos" => "write `acos(a)`",
        "arctan" => "write `atan(a)`",
        "arctan2" => "write `atan2(a, b)`",
        "asinh" | "arcsinh" | "arsinh" => "write `log(a + sqrt(a^2 + 1))`",
        "acosh" | "arccosh" | "arcosh" => "write `log(a + sqrt(a^2 - 1))`",
        "atanh" | "arctanh" | "artanh" => "write `log((1 + a) / (1 - a)) / 2`",
        "fabs" => "write `abs(a)`",
        "sgn" | "signum" => "write `sign(a)`",
        "heaviside" | "step" => "write `if a > 0 { 1 } else { 0 }`",
        "conditional" | "where_" | "select" | "ternary" => "write `if c { a } else { b }`",
        "maximum" | "max_value" | "fmax" => "write `max(a, b)`",
        "minimum" | "min_value" | "fmin" => "write `min(a, b)`",
        "average" => BETWEEN_CELLS,
        "eigen" | "eigenvalue" | "eigenvalues" => EIGEN,
        _ => return None,
    })
}

/// Returns the equivalent of a value that does not exist; `point` is true if it may depend on the point.
pub(crate) fn value(name: &str, point: bool) -> Option<&'static str> {
    Some(match name {
        "y" if point => "coordinates are `x[0]`, `x[1]` and `x[2]`: write `x[1]`",
        "z" if point => "coordinates are `x[0]`, `x[1]` and `x[2]`: write `x[2]`",
        "dx" | "dV" => "leave it out: what a form says is integrated over the cells",
        "ds" | "dS" => "what is integrated over the boundary stands in `on boundary \"tag\" { … }`",
        "nabla" | "del" => "write `grad(u)`, `div(u)` or `curl(u)`",
        "Identity" | "identity" | "eye" | "Id" => "write `I`",
        "e" | "E" => "write `exp(1)`",
        "time" if point => "write `t`",
        "i" | "j" => COMPLEX,
        "interior" => BETWEEN_CELLS,
        _ => return None,
    })
}

/// Returns the remedy for a space of another program instead of one of the language.
pub(crate) fn space(name: &str) -> Option<&'static str> {
    Some(match name {
        "RT" | "RTN" | "BDM" | "BDFM" | "HDiv" | "HDIV" | "RaviartThomas" => {
            "write `Hdiv(k)`: Raviart–Thomas elements, of lowest order 1"
        }
        "N1curl" | "N2curl" | "NED" | "ND" | "Nedelec" | "HCurl" | "HCURL" => {
            "write `Hcurl(k)`: Nédélec elements of the first kind, of lowest order 1"
        }
        "Real" => "write `R`: one value for the whole mesh",
        "DG" | "DGP" | "DGQ" | "DP" | "DQ" | "dP" | "dQ" => "write `L2(k)`",
        "CG" | "P" | "Q" | "Lagrange" | "CGP" | "CGQ" => "write `H1(k)`",
        _ => return None,
    })
}

/// The remedy for words of complex numbers in a form that has none.
const COMPLEX: &str = "complex numbers begin with a declaration, `field u: complex scalar;`: then `i`, `re`, `im` and `conj` are known";

/// The notation of terms on the facets between cells.
pub(crate) const BETWEEN_CELLS: &str = "terms on facets between cells stand in `on interior { … }`, with `inside(e)`, \
                                        `outside(e)`, `jump(e)` and `avg(e)`";

/// The remedy for cells that are not coupled.
pub(crate) const INTEGRATE_BY_PARTS: &str =
    "integrate by parts, so that `-div(a)` in `f0[u]` becomes `f1[u] = a;`";

pub(crate) const COUPLE_CELLS: &str = "join the cells by terms in `on interior { … }`, `f0[jump(u)] = …;`, or let the field \
                                       live in `H1(k)`, where nothing jumps";

const EIGEN: &str = "write `eigen = smallest(5);` in the problem, with `mass = FORM;` for another mass than the L2 product";

/// Returns the remedy for a problem item that does not exist.
pub(crate) fn problem_item(word: &str) -> Option<&'static str> {
    Some(match word {
        "eigenvalues" | "eigenvalue" | "modes" | "modal" => EIGEN,
        "slip" | "wall" | "symmetry" | "noflow" => "write `dirichlet dot(u, n) = 0 on \"tag\";`",
        "timestep" | "steps" | "integrator" | "ode" => {
            "write `time = bdf(order: 2, from: 0, to: 1, step: 0.01);`, with `dt(u)` in the form"
        }
        "print" | "save" | "write" | "export" => {
            "write `report name = EXPR;` for a number of the solution, `output name = EXPR;` for a field; `wf run --output FILE.vtu` names the file"
        }
        "neumann" | "robin" | "flux" | "traction" | "natural" => {
            "fluxes belong into the form: `on boundary \"tag\" { f0[u] = …; }`"
        }
        "bc" | "boundary" | "condition" | "essential" => "write `dirichlet u = 0 on \"tag\";`",
        "refinement" => {
            "the mesh says how fine it is: `ball(refine: 3)`, `box(cells: 16)`; `refine = 1;` divides all of its cells, \
             `adapt(steps: 6);` those with the largest errors"
        }
        "amr" | "adaptive" | "adaptivity" | "estimate" | "mark" => "write `adapt(steps: 6);`",
        _ => return None,
    })
}

/// Returns the equivalent time integrator.
pub(crate) fn scheme(name: &str) -> Option<&'static str> {
    Some(match name {
        "euler" | "backward_euler" | "implicit_euler" => "write `bdf(order: 1, …)`",
        "forward_euler" | "explicit_euler" => "write `rk(order: 1, …)`",
        "crank_nicolson" | "cn" | "midpoint" | "trapezoidal" => "write `theta(theta: 0.5, …)`",
        "rk4" | "runge_kutta" | "ssprk" | "erk" => "write `rk(order: 4, …)`",
        "dirk" | "esdirk" | "irk" | "radau" | "alexander" => "write `sdirk(stages: 3, …)`",
        "gear" | "cvode" | "ida" => "write `bdf(order: 2, …)`",
        "verlet" | "central_differences" | "stoermer" => "write `leapfrog(…)`",
        "hht" | "alpha" | "generalized_alpha" | "wbz" => "write `generalised_alpha(rho: 0.8, …)`",
        _ => return None,
    })
}

/// Returns the equivalent solver.
pub(crate) fn solver(name: &str) -> Option<&'static str> {
    Some(match name {
        "lu" | "LU" | "cholesky" | "llt" | "ldl" | "ldlt" | "qr" | "mumps" | "umfpack"
        | "pardiso" | "superlu" | "superlu_dist" | "spooles" | "klu" | "factor" | "sparse" => {
            "write `direct`: the factors of the assembled matrix"
        }
        "bicg" | "cgs" | "tfqmr" | "idr" | "qmr" => "write `bicgstab`, or `gmres`",
        "pcg" | "conjugate_gradients" | "richardson" => "write `cg`",
        "picard" | "fixed_point" | "snes" | "nonlinear" => "write `newton`",
        "multigrid" | "mg" | "amg" | "boomeramg" | "gamg" | "hypre" => {
            "write `cg(preconditioner: multigrid)`"
        }
        "ilu" | "ssor" | "sor" | "gauss_seidel" => {
            "it is not there: `cg(preconditioner: multigrid)`, or `direct`"
        }
        _ => return None,
    })
}

/// Returns the remedy for a mesh generator that does not exist.
pub(crate) fn generator(name: &str) -> Option<&'static str> {
    Some(match name {
        "line" | "segment" => INTERVAL,
        "square" | "rectangle" | "rect" | "unit_square" | "grid" => "write `box(dim: 2, cells: 8)`",
        "cube" | "brick" | "cuboid" | "unit_cube" | "hexahedron" => "write `box(dim: 3, cells: 8)`",
        "disc" | "disk" | "circle" => "write `ball(dim: 2, refine: 3)`",
        "sphere" => "write `ball(dim: 3, refine: 3)`",
        "annulus" | "ring" => "write `shell(dim: 2)`",
        _ => return None,
    })
}

const INTERVAL: &str = "one dimension is `interval(cells: 100)`";

/// Returns the equivalent argument of `adapt`.
pub(crate) fn argument_name(owner: &str, name: &str) -> Option<&'static str> {
    Some(match (owner, name) {
        ("adapt", "theta" | "marking" | "refine") => "write `fraction`",
        ("adapt", "tolerance" | "tol" | "rtol" | "target") => "write `until`",
        ("adapt", "iterations" | "max_steps") => "write `steps`",
        ("adapt", "interval" | "each" | "frequency") => "write `every`",
        ("adapt", "max_level" | "max_levels" | "depth") => "write `levels`",
        ("adapt", "dofs" | "unknowns" | "max_unknowns" | "max_cells") => "write `max_dofs`",
        _ => return None,
    })
}

/// Returns the remedy for an unknown value of an argument.
pub(crate) fn argument(name: &str, value: &str) -> Option<&'static str> {
    Some(match (name, value) {
        ("dim", "1") | ("cell", "line" | "interval" | "segment" | "edge") => INTERVAL,
        ("cell", "prism" | "wedge" | "pyramid") => {
            "prisms and pyramids are not there yet: write `hex` or `tet`"
        }
        ("cell", "triangle") => "write `tri`",
        ("cell", "quadrilateral" | "square" | "rectangle") => "write `quad`",
        ("cell", "hexahedron" | "cube" | "brick") => "write `hex`",
        ("cell", "tetrahedron") => "write `tet`",
        ("preconditioner", "mg" | "gmg" | "chebyshev") => "write `multigrid`",
        ("preconditioner", "amg" | "gamg" | "boomeramg" | "hypre" | "smoothed_aggregation") => {
            "write `algebraic`: levels of the matrix alone; `multigrid` takes these where the mesh has no coarser one"
        }
        ("preconditioner", "fieldsplit" | "schur") => "write `block`",
        ("preconditioner", "ilu" | "ssor" | "sor" | "cholesky" | "lu") => {
            "it is not there: write `jacobi` or `multigrid`, or solve with `direct`"
        }
        ("preconditioner", "diagonal") => "write `jacobi`",
        ("linear", found) => return solver(found),
        _ => return None,
    })
}
