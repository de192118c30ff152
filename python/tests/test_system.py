"""Systems: residuals, Jacobians and solves with the caller's arrays."""

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg
import weakform as wf

NEO = """
form neo {
    field u: vector; param mu = 1; param lambda = 5; aux young: scalar on cells;
    let F = I + grad(u); let J = det(F);
    energy = young * (mu / 2 * (inner(F, F) - dim - 2 * log(J)) + lambda / 2 * log(J)^2);
}
"""
POISSON = "form poisson { field u: scalar; param f = 1; f0[u] = -f; f1[u] = grad(u); }"
INTERPRETED = {"kernels": "interpreted"}


def triangles(n=4, seed=0):
    """Returns points and triangles of a square in a random order."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1))
    points = np.column_stack([x.ravel(), y.ravel()])
    corner = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    cells = np.concatenate([
        np.column_stack([corner, corner + 1, corner + n + 2]),
        np.column_stack([corner, corner + n + 2, corner + n + 1]),
    ])
    new = rng.permutation(len(points))
    shuffled = np.empty_like(points)
    shuffled[new] = points
    return shuffled, rng.permutation(new[cells])


def neo(degree=1):
    mesh = wf.mesh("box(dim: 2, cells: 3)")
    system = wf.Form(NEO).on(mesh, degree=degree, params={"mu": 2.0}, data={"young": lambda x: 1 + x[:, 0]}, **INTERPRETED)
    system.dirichlet("u", 0.0, on="x0")
    return system.dirichlet("u", lambda x: np.c_[0.1 + 0 * x[:, 1], 0.05 * x[:, 1]], on="x1")


def test_the_jacobian_is_the_derivative_of_the_residual():
    system = neo(degree=2)
    rng = np.random.default_rng(1)
    free = np.setdiff1d(np.arange(system.dofs), system.constrained_dofs)
    u = system.initial() + 0.02 * rng.standard_normal(system.dofs)
    w = np.zeros(system.dofs)
    w[free] = rng.standard_normal(len(free))
    system.linearise(u)
    step = 1e-5
    difference = (system.residual(u + step * w) - system.residual(u - step * w)) / (2 * step)
    applied = system.apply(w)
    np.testing.assert_allclose(applied[free], difference[free], rtol=1e-6, atol=1e-6)
    out = np.empty_like(w)
    assert system.apply(w, out=out) is out
    np.testing.assert_array_equal(out, applied)
    with pytest.raises(ValueError, match="`out` has the shape"):
        system.apply(w, out=np.empty(3))


def test_matrix_operator_and_diagonal_agree():
    system = neo()
    u = system.initial()
    system.linearise(u)
    matrix, operator = system.to_scipy(), system.operator()
    assert isinstance(matrix, sparse.csr_array) and isinstance(operator, linalg.LinearOperator)
    w = np.random.default_rng(2).standard_normal(system.dofs)
    np.testing.assert_allclose(matrix @ w, operator @ w, atol=1e-12)
    np.testing.assert_allclose(matrix.diagonal(), system.diagonal(), atol=1e-12)
    assert abs(matrix - matrix.T).max() < 1e-12


def test_scipy_solves_the_same_equations():
    mesh = wf.mesh("box(dim: 2, cells: 6)")
    system = wf.Form(POISSON).on(mesh, degree=2, params={"f": 3.0}, **INTERPRETED)
    system.dirichlet("u", lambda x: x[:, 0] * x[:, 1])
    u0 = system.initial()
    system.linearise(u0)
    by_scipy = u0 - linalg.spsolve(system.to_scipy().tocsc(), system.residual(u0))
    own = system.solve()
    np.testing.assert_allclose(own, by_scipy, atol=1e-9)
    assert system.report["solver"] and len(system.report["residuals"]) == system.report["iterations"] + 1
    found, failed = linalg.cg(system.operator(), -system.residual(u0), rtol=1e-12)
    assert failed == 0
    np.testing.assert_allclose(u0 + found, own, atol=1e-8)


def test_newton_by_hand_meets_solve():
    system = neo()
    u = system.initial()
    for _ in range(8):
        r = system.residual(u)
        system.linearise(u)
        u = u - linalg.spsolve(system.to_scipy().tocsc(), r)
    np.testing.assert_allclose(system.solve(), u, atol=1e-8)
    solution = system.solution(u)
    assert solution.energy > 0 and solution.u.shape == (16, 2)


def test_dirichlet_values_are_numbers_arrays_and_functions():
    mesh = wf.mesh("box(dim: 2, cells: 4)")
    laplace = wf.Form("form laplace { field u: scalar; f1[u] = grad(u); }")
    exact = lambda x: 1 + 2 * x[:, 0] - x[:, 1]
    by_function = laplace.on(mesh, **INTERPRETED).dirichlet("u", exact).solve()
    system = laplace.on(mesh, **INTERPRETED)
    x = system.points("u")
    by_array = system.dirichlet("u", exact(x)).solve()
    np.testing.assert_allclose(by_function, exact(x), atol=1e-10)
    np.testing.assert_allclose(by_array, exact(x), atol=1e-10)
    linear = laplace.on(mesh, **INTERPRETED).dirichlet("u", 0, on="x0").dirichlet("u", 1, on=["x1"]).solve()
    np.testing.assert_allclose(linear, x[:, 0], atol=1e-10)
    timed = laplace.on(mesh, time=3.0, **INTERPRETED).dirichlet("u", lambda x, t: t + 0 * x[:, 0])
    np.testing.assert_allclose(timed.solve(), 3, atol=1e-10)
    with pytest.raises(ZeroDivisionError):
        laplace.on(mesh, **INTERPRETED).dirichlet("u", lambda x: 1 / 0).solve()
    with pytest.raises(ValueError, match="returned the shape"):
        laplace.on(mesh, **INTERPRETED).dirichlet("u", lambda x: np.ones(3)).solve()
    with pytest.raises(KeyError, match="there is no field `v`"):
        laplace.on(mesh, **INTERPRETED).dirichlet("v", 0)
    with pytest.raises(wf.Error, match="x2"):
        laplace.on(mesh, **INTERPRETED).dirichlet("u", 0, on="x2").solve()


def test_components_and_normals():
    mesh = wf.mesh("box(dim: 2, cells: 2)")
    form = wf.Form("form still { field u: vector; f0[u] = u - [1, 2]; }")
    # Quadrature at the nodes makes the equations of the nodes independent.
    system = form.on(mesh, quadrature="collocated", **INTERPRETED)
    system.dirichlet("u", 0, on="x0", component=1).dirichlet("u", 5, on="x1", normal=True)
    u = system.split(system.solve())["u"]
    x = system.points("u")
    np.testing.assert_allclose(u[x[:, 0] == 0, 1], 0, atol=1e-12)
    np.testing.assert_allclose(u[x[:, 0] == 1, 0], 5, atol=1e-12)
    assert u[x[:, 0] == 0.5, 0] == pytest.approx(1, abs=1e-9)


def test_integrals_of_polynomials():
    mesh = wf.mesh("box(dim: 3, cells: [2, 1, 1])")
    system = wf.Form(POISSON).on(mesh, degree=2, **INTERPRETED)
    u = system.interpolate(u=lambda x: x[:, 0] ** 2 + x[:, 1] * x[:, 2])
    assert system.measure(u, "integral(u)") == pytest.approx(1 / 3 + 1 / 4, abs=1e-13)
    flux = system.measure(u, "integral(grad(u))")
    np.testing.assert_allclose(flux, [1, 0.5, 0.5], atol=1e-12)
    assert system.measure(u, 'integral(dot(grad(u), n), on: "x1")') == pytest.approx(2, abs=1e-12)
    point = [[0.3, 0.7, 0.2]]
    np.testing.assert_allclose(system.values_at("u", u, point), [0.09 + 0.14], atol=1e-13)
    np.testing.assert_allclose(system.gradients_at("u", u, point), [[0.6, 0.2, 0.7]], atol=1e-12)


def test_fields_are_split_and_joined():
    form = wf.Form("form two { field u: vector; field p: scalar in H1(k - 1); f0[u] = u; f0[p] = p; }")
    system = form.on(wf.mesh("box(dim: 2, cells: 2)"), degree=2, **INTERPRETED)
    u = np.arange(system.dofs, dtype=float)
    parts = system.split(u)
    assert parts["u"].shape == (25, 2) and parts["p"].shape == (9,)
    np.testing.assert_array_equal(system.join(parts), u)
    assert np.shares_memory(parts["p"], u)
    with pytest.raises(ValueError, match="has 9 entries"):
        system.join({"p": [1.0]})
    with pytest.raises(ValueError, match="the state"):
        system.residual(u[:-1])


def test_steps_through_time_follow_the_exact_solution():
    heat = wf.Form("form heat { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }")
    system = heat.on(wf.mesh("box(dim: 2, cells: 4)"), degree=2, **INTERPRETED)
    system.dirichlet("u", lambda x, t: x[:, 0] * t)
    # u = x t solves u̇ − Δu = x with the source of a load.
    mass = wf.Form("form mass { field u: scalar; f0[u] = x[0]; }")
    load = mass.on(wf.mesh("box(dim: 2, cells: 4)"), degree=2, **INTERPRETED)
    system.set_load(load.residual(np.zeros(load.dofs)))
    x = system.points("u")[:, 0]
    times = []
    for step in system.steps(wf.bdf(2), np.zeros(system.dofs), to=1.0, dt=0.3):
        np.testing.assert_allclose(step.u, x * step.t, atol=1e-9)
        assert step.measure("integral(u)") == pytest.approx(step.t / 2, abs=1e-9)
        times.append(step.t)
    np.testing.assert_allclose(times, [0.3, 0.6, 0.9, 1.0])
    with pytest.raises(wf.Error, match="bdf"):
        next(system.steps(wf.bdf(9), to=1.0, dt=0.1))
    for scheme in (wf.theta(1), wf.sdirk(3)):
        *_, last = system.steps(scheme, np.zeros(system.dofs), to=0.5, dt=0.25)
        np.testing.assert_allclose(last["u"], x / 2, atol=1e-8)


def test_meshes_of_arrays_keep_the_numbers_of_the_caller():
    points, cells = triangles()
    centres = points[cells].mean(axis=1)
    steel = np.flatnonzero(centres[:, 0] < 0.5)
    left = [tuple(row) for row in np.sort(np.concatenate([cells[:, [0, 1]], cells[:, [1, 2]], cells[:, [2, 0]]]), axis=1)
            if (points[row, 0] == 0).all()]
    mesh = wf.Mesh(points, cells, "triangle", cell_tags={"steel": steel}, facet_tags={"left": left})
    np.testing.assert_array_equal(mesh.points[:, :2], points)
    np.testing.assert_array_equal(np.sort(mesh.cells, axis=1), np.sort(cells, axis=1))
    np.testing.assert_array_equal(mesh.cell_tags["steel"], steel)
    assert {tuple(sorted(row)) for row in mesh.facet_tags["left"].tolist()} == set(map(tuple, np.array(left).tolist()))
    # Data of cells goes in, and values at points come out, in the caller's order.
    form = wf.Form("form average { field u: scalar; aux a: scalar on cells; aux b: scalar on nodes in H1(1); f0[u] = (1 + a^2) * (u - b); }")
    own = np.random.default_rng(3).standard_normal(len(cells))
    system = form.on(mesh, data={"a": own, "b": 2 * points[:, 0] - points[:, 1]}, **INTERPRETED)
    at = system.data_points("a")[:, :2]
    nearest = np.argmin(((centres[:, None] - at[None]) ** 2).sum(axis=2), axis=1)
    np.testing.assert_array_equal(system.data_values("a")[nearest], own)
    u = system.solve()
    np.testing.assert_allclose(system.at_points("u", u), 2 * points[:, 0] - points[:, 1], atol=1e-9)
    areas = 0.5 * np.abs(np.linalg.det(np.stack([points[cells[:, 1]] - points[cells[:, 0]], points[cells[:, 2]] - points[cells[:, 0]]], axis=1)))
    assert system.measure(u, "integral(a)") == pytest.approx(float(areas @ own), abs=1e-12)
    assert system.measure(u, 'integral(1, on: "left")') == pytest.approx(1)
    with pytest.raises(ValueError, match="neither those of the cells"):
        form.on(mesh, data={"a": own[:-1], "b": 0.0})


@pytest.mark.parametrize("cell", ["hexahedron", "hexahedron27", "quad9", "triangle6", "tetra10"])
def test_cells_are_in_the_order_of_vtk(cell):
    generated = {
        "hexahedron": "box(dim: 3, cells: 2)", "hexahedron27": "ball(dim: 3, refine: 0, order: 2)", "quad9": "ball(dim: 2, refine: 0, order: 2)",
        "triangle6": "box(dim: 2, cells: 2, cell: tri)", "tetra10": "box(dim: 3, cells: 1, cell: tet)",
    }
    first = wf.mesh(generated[cell])
    points, cells = first.points, first.cells
    if cell in ("triangle6", "tetra10"):
        # Midpoints of the edges in VTK's order.
        edges = {"triangle6": [(0, 1), (1, 2), (2, 0)], "tetra10": [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)]}[cell]
        middles = np.stack([points[cells[:, [a, b]]].mean(axis=1) for a, b in edges], axis=1)
        places, inverse = np.unique(middles.reshape(-1, 3), axis=0, return_inverse=True)
        cells = np.hstack([cells, len(points) + inverse.reshape(len(cells), -1)])
        points = np.vstack([points, places])
    mesh = wf.Mesh(points, cells, cell)
    volume = wf.Form(POISSON).on(mesh, **INTERPRETED)
    again = wf.Form(POISSON).on(first, **INTERPRETED)
    one = np.zeros(volume.dofs)
    assert volume.measure(one, "integral(1)") == pytest.approx(again.measure(np.zeros(again.dofs), "integral(1)"), rel=1e-12)


@pytest.mark.parametrize("dim, cell, order", [(2, "quad", 4), (3, "hex", 3), (2, "tri", 3), (3, "tet", 4)])
def test_meshes_of_any_order(dim, cell, order):
    # Curved cells keep their volume, and the mesh its tags.
    first = wf.mesh(f"ball(dim: {dim}, refine: 0, order: {order}, cell: {cell})")
    assert first.order == order
    kind = {"quad": "QUADRILATERAL", "hex": "HEXAHEDRON", "tri": "TRIANGLE", "tet": "TETRAHEDRON"}[cell]
    mesh = wf.Mesh(first.points, first.cells, f"VTK_LAGRANGE_{kind}", facet_tags=first.facet_tags)
    assert mesh.order == order
    again = wf.Mesh.from_meshio(mesh.to_meshio())
    assert again.order == order
    measures = []
    for own in (first, mesh, again):
        system = wf.Form(POISSON).on(own, **INTERPRETED)
        zero = np.zeros(system.dofs)
        texts = ["integral(1)", 'integral(dot(x, n), on: "surface")']
        measures.append([system.measure(zero, text) for text in texts])
    np.testing.assert_allclose(measures[1], measures[0], rtol=1e-12)
    np.testing.assert_allclose(measures[2], measures[0], rtol=1e-12)
    with pytest.raises(wf.MeshError, match="columns"):
        wf.Mesh(first.points, first.cells[:, :-1], f"VTK_LAGRANGE_{kind}")


def test_wrong_meshes():
    points, cells = triangles(2)
    with pytest.raises(wf.MeshError, match="wedge"):
        wf.Mesh(points, cells, "wedge")
    with pytest.raises(wf.MeshError, match="rows of integers"):
        wf.Mesh(points, cells.astype(float), "triangle")
    with pytest.raises(wf.MeshError, match="of 9"):
        wf.Mesh(points, cells + 5, "triangle")
    with pytest.raises(wf.MeshError, match="3 nodes"):
        wf.Mesh(points, cells, "triangle6")
    with pytest.raises(wf.MeshError):
        wf.Mesh(np.zeros_like(points), cells, "triangle")
    with pytest.raises(wf.LanguageError, match="box"):
        wf.mesh("bix(dim: 2)")


def test_a_function_of_values_that_asks_its_own_system_is_an_error():
    def begun():
        return wf.Form(POISSON).on(wf.mesh("box(dim: 2, cells: 2)"), **INTERPRETED)

    for ask in (lambda s: s.dofs, lambda s: s.points("u"), lambda s: s.residual(np.zeros(9)), lambda s: s.time):
        system = begun()
        system.dirichlet("u", lambda x, s=system, ask=ask: [float(bool(ask(s)))] * len(x))
        with pytest.raises(wf.Error, match="asks the system that has called it"):
            system.solve()
    # Another system may be asked.
    other = begun().dirichlet("u", 0.0)
    values = other.solve()
    system = begun().dirichlet("u", lambda x: other.values_at("u", values, x[:, :2]) + other.dofs)
    assert np.isclose(system.solve().max(), 9 + values.max(), atol=1e-2)


def test_conditions_that_cannot_be_are_refused_at_once():
    system = wf.Form(POISSON).on(wf.mesh("box(dim: 2, cells: 2)"), **INTERPRETED)
    with pytest.raises(wf.UnknownName, match="x9"):
        system.dirichlet("u", 0.0, on="x9")
    for wrong in ({"on": []}, {"component": 1}, {"normal": True}, {"value": np.nan}):
        with pytest.raises(wf.InvalidValue):
            system.dirichlet("u", **wrong)
    # None of them is left.
    system.dirichlet("u", 0.0, on="x0").solve()
    with pytest.raises(wf.InvalidValue, match="9 entries"):
        system.split(np.zeros(3))


def test_remedies_are_those_of_python(tmp_path):
    mesh = wf.mesh("box(dim: 2, cells: 2)")
    with pytest.raises(wf.Error, match=r'`\.dirichlet\("u", 0\.0\)`'):
        wf.Form(POISSON).on(mesh, **INTERPRETED).solve()
    with pytest.raises(wf.Error, match=r"give it to `on`, `data="):
        wf.Form("form f { field u: scalar; aux kappa: scalar; f0[u] = kappa * u; }").on(mesh, **INTERPRETED).solve()
    system = wf.Form(POISSON).on(mesh, **INTERPRETED).dirichlet("u", 0.0)
    with pytest.raises(wf.InvalidValue, match="vtu"):
        system.write(tmp_path / "mine.wf", system.solve())


def test_a_failed_solve_has_the_state_that_it_reached():
    form = wf.Form("form m { field u: scalar; f0[u] = -100 * exp(u); f1[u] = grad(u); }")
    system = form.on(wf.mesh("box(dim: 2, cells: 2)"), **INTERPRETED).dirichlet("u", 0.0)
    with pytest.raises(wf.NotConverged) as failure:
        system.solve()
    assert failure.value.solution["u"].shape == (9,)


def test_the_system_of_a_solution():
    text = POISSON + "problem square solves poisson { mesh = box(dim: 2, cells: 4); dirichlet u = 0; }"
    solution = wf.parse(text).problem().run(kernels="interpreted")
    system = solution.system()
    assert np.abs(system.residual(solution.vector)).max() < 1e-9
    u = system.set_param("f", 2.0).solve(solution.vector)
    np.testing.assert_allclose(u, 2 * solution.vector, atol=1e-9)
    with pytest.raises(wf.Error, match="has the conditions of its problem"):
        system.dirichlet("u", 1)


def test_compiled_kernels_agree_with_interpreted_ones():
    mesh = wf.mesh("box(dim: 2, cells: 3)")
    systems = [wf.Form(POISSON).on(mesh, degree=2, kernels=kernels) for kernels in ("compiled", "interpreted")]
    u = np.random.default_rng(4).standard_normal(systems[0].dofs)
    first, second = (system.residual(u) for system in systems)
    np.testing.assert_allclose(first, second, atol=1e-12)


def test_vectors_share_their_memory():
    system = wf.Form(POISSON).on(wf.mesh("box(dim: 2, cells: 2)"), **INTERPRETED).dirichlet("u", 0.0)
    u = system.vector(np.arange(9.0))
    shared = np.from_dlpack(u)
    np.testing.assert_array_equal(shared, np.arange(9.0))
    u.set(np.ones(9))
    np.testing.assert_array_equal(shared, np.ones(9))
    assert u.__dlpack_device__() == (1, 0) and not hasattr(u, "__cuda_array_interface__")
    np.testing.assert_array_equal(u.places, np.arange(9))
    u.take(np.arange(9.0) * 2)
    np.testing.assert_array_equal(shared, np.arange(9.0) * 2)
    with pytest.raises(ValueError, match="expected 9"):
        u.take(np.ones(4))
    with pytest.raises(ValueError, match="float64"):
        u.take(np.ones(9, dtype=np.float32))
    with pytest.raises(ValueError, match="apart"):
        u.take(np.ones(18)[::2])
    r = system.residual(u)
    assert isinstance(r, wf.Vector) and len(r) == 9
    np.testing.assert_array_equal(r.to_numpy(), system.residual(np.arange(9.0) * 2))
    solved = system.solve(u)
    del u, r
    np.testing.assert_allclose(np.from_dlpack(solved), system.solve(), atol=1e-10)
    assert shared[1] == 2
