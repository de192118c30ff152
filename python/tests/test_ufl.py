"""Forms of UFL: each row of the table against a handwritten form, at random states."""

import re

import numpy as np
import pytest
import weakform as wf

ufl = pytest.importorskip("ufl")
basix = pytest.importorskip("basix.ufl")

from ufl import (  # noqa: E402
    Coefficient, Constant, FunctionSpace, Measure, MixedFunctionSpace, SpatialCoordinate, TestFunction, TestFunctions,
    TrialFunction, as_tensor, as_vector, avg, cofac, conditional, cos, cross, curl, derivative, det, dev, diff, div, dot,
    dS, ds, dx, exp, grad, gt, i, inner, inv, j, jump, k, ln, max_value, min_value, nabla_grad, outer, sin, skew, split,
    sqrt, sym, tr, transpose, variable,
)

TRIANGLE = ufl.Mesh(basix.element("Lagrange", "triangle", 1, shape=(2,)))
TETRAHEDRON = ufl.Mesh(basix.element("Lagrange", "tetrahedron", 1, shape=(3,)))
S = FunctionSpace(TRIANGLE, basix.element("Lagrange", "triangle", 2))
V = FunctionSpace(TRIANGLE, basix.element("Lagrange", "triangle", 2, shape=(2,)))
Q = FunctionSpace(TRIANGLE, basix.element("Lagrange", "triangle", 1))
D0 = FunctionSpace(TRIANGLE, basix.element("DG", "triangle", 0))
D1 = FunctionSpace(TRIANGLE, basix.element("DG", "triangle", 1))
W = FunctionSpace(TETRAHEDRON, basix.element("Lagrange", "tetrahedron", 1, shape=(3,)))
u, v = Coefficient(S), TestFunction(S)
U, Z = Coefficient(V), TestFunction(V)
B, C = Coefficient(W), TestFunction(W)
x, n = SpatialCoordinate(TRIANGLE), ufl.FacetNormal(TRIANGLE)
h = ufl.CellDiameter(TRIANGLE)
c, g = Constant(TRIANGLE), Constant(TRIANGLE, shape=(2,))
kappa, a, r = Coefficient(D0), Coefficient(Q), Coefficient(D1)
NAMES = {"c": c, "g": g, "kappa": kappa, "a": a}
F = ufl.Identity(2) + grad(U)
variable_u = variable(u)
S_ = "field u: scalar in H1(k); test v for u;"
V_ = "field U: vector in H1(k); test Z for U;"


def compared(form, unknowns, text, *, mesh="box(dim: 2, cells: 2, cell: tri)", params=None, data=None, seed=0, size=0.3, **options):
    """Compares residuals and Jacobians of a form of UFL and of a text, and returns the converted form."""
    own = wf.from_ufl(form, unknowns, NAMES, **options)
    domain = wf.mesh(mesh)
    given = {name: value for name, value in (params or {}).items()}
    systems = []
    for one in (own, wf.Form(text)):
        names = one.data(domain.dim)
        some = {name: value for name, value in (data or {}).items() if name in names}
        systems.append(one.on(domain, degree=own.degree, params=given, data=some, kernels="interpreted"))
    rng = np.random.default_rng(seed)
    state, direction = (size * rng.standard_normal(systems[0].dofs) for _ in range(2))
    residuals = [system.residual(state) for system in systems]
    products = [system.linearise(state).apply(direction) for system in systems]
    for first, second in (residuals, products):
        assert np.abs(second).max() > 1e-6
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-11)
    return own


SCALARS = [
    # Operators and functions of numbers.
    ("operators", (-u + 3 * u**2 / (1 + u**2) - c) * v * dx, "(-u + 3 * u^2 / (1 + u^2) - c) * v"),
    ("functions", (sin(u) + cos(u) * exp(u) + ln(2 + u**2) + sqrt(1 + u**2) + ufl.tanh(u) + ufl.atan(u)) * v * dx,
     "(sin(u) + cos(u) * exp(u) + log(2 + u^2) + sqrt(1 + u^2) + tanh(u) + atan(u)) * v"),
    ("conditional", conditional(gt(u, c), u**2, -u) * v * dx, "(if u > c { u^2 } else { -u }) * v"),
    ("minimum", (min_value(u, x[0]) + max_value(u, 0.1) + abs(u)) * v * dx, "(min(u, x[0]) + max(u, 0.1) + abs(u)) * v"),
    ("conditions", conditional(ufl.And(gt(u, 0), ufl.Not(gt(x[0], 0.5))), u, 2 * u) * v * dx,
     "(if u > 0 && !(x[0] > 0.5) { u } else { 2 * u }) * v"),
    # Coefficients, constants, geometry.
    ("coefficients", (kappa * inner(grad(u), grad(v)) + dot(g, grad(u)) * v + a * v) * dx,
     "kappa * dot(grad(u), grad(v)) + dot(g, grad(u)) * v + a * v"),
    ("gradients of data", inner(grad(a), grad(v)) * u * dx, "dot(grad(a), grad(v)) * u"),
    ("geometry", (x[0] * x[1] * u + h * u) * v * dx, "(x[0] * x[1] * u + h * u) * v"),
    # Indices.
    ("indices", u.dx(i) * v.dx(i) * dx + u.dx(0) * v.dx(1) * dx, "dot(grad(u), grad(v)) + grad(u)[0] * grad(v)[1]"),
    ("derivatives", (diff(variable_u**3, variable_u) + 0 * u) * v * dx, "3 * u^2 * v"),
    ("a linear form", None, "kappa * dot(grad(u), grad(v)) + c * u * v - a * v"),
]


@pytest.mark.parametrize("name, form, text", SCALARS, ids=[row[0] for row in SCALARS])
def test_scalars(name, form, text):
    if name == "a linear form":
        trial = TrialFunction(S)
        form = (kappa * inner(grad(trial), grad(v)) + c * trial * v) * dx == a * v * dx
    used = {name: value for name, value in {"c": 0.3, "g": [1.0, -2.0]}.items() if name in wf.from_ufl(form, {"u": u}, NAMES).params()}
    data = {"kappa": lambda x: 1 + x[:, 0], "a": lambda x: x[:, 0] - 2 * x[:, 1]}
    declared = {"c": "param c = 0;", "g": "param g: vector = [0, 0];", "kappa": "aux kappa: scalar on cells;",
                "a": "aux a: scalar on nodes in H1(k - 1);"}
    words = set(re.findall(r"\w+", text))
    own = f"form own {{ {S_} {' '.join(line for word, line in declared.items() if word in words)} residual = {text}; }}"
    compared(form, {"u": u}, own, params=used, data=data)


VECTORS = [
    ("words", (inner(sym(grad(U)), grad(Z)) + inner(skew(grad(U)), grad(Z)) + inner(dev(grad(U)), grad(Z))
               + tr(grad(U)) * div(Z) + inner(transpose(grad(U)), grad(Z))) * dx,
     "inner(sym(grad(U)), grad(Z)) + inner(skew(grad(U)), grad(Z)) + inner(dev(grad(U)), grad(Z)) + tr(grad(U)) * div(Z)"
     " + inner(transpose(grad(U)), grad(Z))"),
    ("products", (dot(outer(U, U), U)[0] * Z[0] + inner(dot(grad(U), U), Z) + inner(grad(U) * U, Z)) * dx,
     "dot(outer(U, U), U)[0] * Z[0] + 2 * dot(grad(U) * U, Z)"),
    ("matrices", (det(F) * inner(inv(F), grad(Z)) + inner(cofac(F), grad(Z))) * dx,
     "det(I + grad(U)) * inner(inv(I + grad(U)), grad(Z)) + inner(cof(I + grad(U)), grad(Z))"),
    ("index notation", (0.5 * (U[i].dx(j) + U[j].dx(i)) * Z[i].dx(j) + U[k].dx(k) * Z[i].dx(i)) * dx,
     "inner(sym(grad(U)), grad(Z)) + div(U) * div(Z)"),
    ("list tensors", inner(as_vector([U[1], x[0]]), Z) * dx + inner(as_tensor([[U[0], 0], [1, U[1]]]), grad(Z)) * dx,
     "dot([U[1], x[0]], Z) + inner([[U[0], 0], [1, U[1]]], grad(Z))"),
    ("tensors of indices", inner(as_tensor(F[i, k] * F[j, k], (i, j)), grad(Z)) * dx,
     "inner((I + grad(U)) * transpose(I + grad(U)), grad(Z))"),
    ("convection", inner(dot(U, nabla_grad(U)), Z) * dx, "dot(grad(U) * U, Z)"),
    ("curl", curl(U) * curl(Z) * dx, "curl(U) * curl(Z)"),
    ("perpendicular", inner(ufl.perp(U), Z) * dx + dot(U, U) * Z[1] * dx, "dot([-U[1], U[0]], Z) + dot(U, U) * Z[1]"),
]


@pytest.mark.parametrize("name, form, text", VECTORS, ids=[row[0] for row in VECTORS])
def test_vectors(name, form, text):
    compared(form, {"U": U}, f"form own {{ {V_} residual = {text}; }}")


def test_a_stress_by_diff():
    own = variable(F)
    psi = inner(own, own) / 2 + det(own) ** 2
    form = inner(diff(psi, own), grad(Z)) * dx
    compared(form, {"U": U}, f"form own {{ {V_} energy = inner(I + grad(U), I + grad(U)) / 2 + det(I + grad(U))^2; }}".replace("test Z for U;", ""))


def test_energies_stay_energies():
    J = det(F)
    psi = (inner(F, F) - 2 - 2 * ln(J)) / 2 + ln(J) ** 2
    text = "form own { field U: vector; let F = I + grad(U); let J = det(F); energy = (inner(F, F) - 2 - 2 * log(J)) / 2 + log(J)^2; }"
    for form in (psi * dx, derivative(psi * dx, U, Z)):
        own = compared(form, {"U": U}, text, size=0.02)
        assert "energy =" in own.text and "residual" not in own.text
    # Its derivative as UFL expands it, at the same state.
    from ufl.algorithms import expand_derivatives

    expanded = compared(expand_derivatives(derivative(psi * dx, U, Z)), {"U": U}, text, size=0.02)
    assert "residual =" in expanded.text


def test_three_dimensions():
    E = sym(grad(B))
    form = (2 * inner(E, grad(C)) + inner(curl(B), curl(C)) + inner(cross(B, as_vector([0, 0, 1])), C)) * dx
    text = ("form own { field B: vector; test C for B; residual = 2 * inner(sym(grad(B)), grad(C))"
            " + dot(curl(B), curl(C)) + dot(cross(B, [0, 0, 1]), C); }")
    compared(form, {"B": B}, text, mesh="box(dim: 3, cells: 1, cell: tet)")
    stiffness = as_tensor(ufl.Identity(3)[i, k] * ufl.Identity(3)[j, ufl.l] + ufl.Identity(3)[i, j] * ufl.Identity(3)[k, ufl.l], (i, j, k, ufl.l))
    contracted = stiffness[i, j, k, ufl.l] * E[k, ufl.l] * E[i, j] / 2 * dx
    text = "form own { field B: vector; let E = sym(grad(B)); energy = (inner(E, E) + tr(E)^2) / 2; }"
    compared(contracted, {"B": B}, text, mesh="box(dim: 3, cells: 1, cell: tet)")


def test_regions():
    form = inner(grad(u), grad(v)) * dx + u * v * dx(3) + c * v * ds(7) + u**2 * v * ds
    text = f"""form own {{ {S_} param c = 1; residual = dot(grad(u), grad(v));
        on cells "3" {{ residual = u * v; }} on boundary "x1" {{ residual = c * v; }}
        on boundary "x0", "x1", "y0", "y1" {{ residual = u^2 * v; }} }}"""
    own = wf.from_ufl(form, {"u": u}, NAMES, tags={7: "x1"}, boundary=("x0", "x1", "y0", "y1"))
    base = wf.mesh("box(dim: 2, cells: 2, cell: tri)")
    mesh = wf.Mesh(base.points[:, :2], base.cells, "triangle", cell_tags={"3": [0, 1, 5]}, facet_tags=base.facet_tags)
    systems = [one.on(mesh, degree=2, params={"c": 0.7}, kernels="interpreted") for one in (own, wf.Form(text))]
    state = np.random.default_rng(1).standard_normal(systems[0].dofs)
    np.testing.assert_allclose(*(system.residual(state) for system in systems), atol=1e-12)


def test_normals_and_interior_facets():
    form = inner(dot(grad(u), n) * n, grad(v)) * ds + inner(grad(u), grad(v)) * dx
    text = f"form own {{ {S_} residual = dot(grad(u), grad(v)); on boundary \"x1\" {{ residual = dot(grad(u), n) * dot(n, grad(v)); }} }}"
    compared(form, {"u": u}, text, boundary=("x1",))
    q = TestFunction(D1)
    form = (inner(grad(r), grad(q)) * dx - inner(avg(grad(r)), jump(q, n)) * dS - inner(jump(r, n), avg(grad(q))) * dS
            + 10 / avg(h) * inner(jump(r, n), jump(q, n)) * dS)
    text = """form own { field r: scalar in L2(k); test q for r; residual = dot(grad(r), grad(q));
        on interior { residual = -dot(avg(grad(r)), n) * jump(q) - jump(r) * dot(avg(grad(q)), n) + 10 / avg(h) * jump(r) * jump(q); } }"""
    compared(form, {"r": r}, text)


def test_several_fields():
    text = """form own { field w: vector in H1(k); field p: scalar in H1(k - 1); test z for w; test q for p;
        residual = inner(grad(w), grad(z)) - p * div(z) - div(w) * q + dot(grad(w) * w, z); }"""
    p, product = Coefficient(Q), MixedFunctionSpace(V, Q)
    z, q = TestFunctions(product)
    form = (inner(grad(U), grad(z)) - p * div(z) - div(U) * q + inner(grad(U) * U, z)) * dx
    compared(form, {"w": U, "p": p}, text)
    # One coefficient of a mixed element.
    mixed = FunctionSpace(TRIANGLE, basix.mixed_element([V.ufl_element(), Q.ufl_element()]))
    both = Coefficient(mixed)
    w, p = split(both)
    z, q = split(TestFunction(mixed))
    form = (inner(grad(w), grad(z)) - p * div(z) - div(w) * q + inner(grad(w) * w, z)) * dx
    own = compared(form, {("w", "p"): both}, text)
    assert own.degree == 2 and "field p: scalar in H1(k - 1);" in own.text


def test_edge_and_face_elements():
    E = FunctionSpace(TRIANGLE, basix.element("N1curl", "triangle", 1))
    e, f = Coefficient(E), TestFunction(E)
    compared((curl(e) * curl(f) + inner(e, f)) * dx, {"e": e},
             "form own { field e: vector in Hcurl(k); test f for e; residual = curl(e) * curl(f) + dot(e, f); }")
    R, L = FunctionSpace(TRIANGLE, basix.element("RT", "triangle", 1)), D0
    s, p = Coefficient(R), Coefficient(L)
    t, q = TestFunctions(MixedFunctionSpace(R, L))
    compared((inner(s, t) - p * div(t) - div(s) * q + q) * dx, {"s": s, "p": p},
             """form own { field s: vector in Hdiv(k); field p: scalar in L2(k - 1); test y for s; test q for p;
                residual = dot(s, y) - p * div(y) - div(s) * q + q; }""")


def test_the_text_runs_without_python(tmp_path):
    form = wf.from_ufl(inner((1 + u**2) * grad(u), grad(v)) * dx - c * v * dx, {"u": u}, NAMES, name="diffusion")
    text = form.text + "problem p solves diffusion { mesh = box(dim: 2, cells: 2); degree = 2; dirichlet u = 0; report m = integral(u); }"
    run = wf.parse(text).problem().run(c=1.0, kernels="interpreted")
    assert run.reports["m"] == pytest.approx(0.0350, abs=5e-4)


BUBBLE = Coefficient(FunctionSpace(TRIANGLE, basix.element("bubble", "triangle", 3)))
REFUSED = [
    ("CellVolume", lambda: ufl.CellVolume(TRIANGLE) * u * v * dx, {"u": u}),
    ("Circumradius", lambda: ufl.Circumradius(TRIANGLE) * u * v * dx, {"u": u}),
    ("BesselJ", lambda: ufl.bessel_J(1, u) * v * dx, {"u": u}),
    ("Erf", lambda: ufl.erf(u) * v * dx, {"u": u}),
    ("bubble", lambda: BUBBLE * TestFunction(BUBBLE.ufl_function_space()) * dx, {"b": BUBBLE}),
    ("FacetArea", lambda: ufl.FacetArea(TRIANGLE) * v * ds, {"u": u}),
    ("ComplexValue", lambda: ufl.real(ufl.as_ufl(1j) * u) * v * dx, {"u": u}),
    ("L2 of degree 1", lambda: r * u * v * dx, {"u": u}),
]


@pytest.mark.parametrize("construct, form, unknowns", REFUSED, ids=[row[0] for row in REFUSED])
def test_refusals_name_the_construct(construct, form, unknowns):
    with pytest.raises(wf.InvalidValue, match=construct):
        wf.from_ufl(form(), unknowns)


def test_unknowns_have_to_be_named():
    with pytest.raises(wf.InvalidValue, match="belongs to no unknown"):
        wf.from_ufl(u * TestFunction(Q) * dx, {"u": u})
    with pytest.raises(wf.InvalidValue, match="has 1 parts"):
        wf.from_ufl(u * v * dx, {("u", "p"): u})


def test_measures_of_subdomains_are_tags():
    measure = Measure("ds", domain=TRIANGLE, subdomain_id=(1, 2))
    own = wf.from_ufl(inner(grad(u), grad(v)) * dx + u * v * measure, {"u": u})
    assert 'on boundary "1"' in own.text and 'on boundary "2"' in own.text
