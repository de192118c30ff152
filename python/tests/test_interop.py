"""Solutions and meshes for other programs."""

import numpy as np
import pytest
import weakform as wf

TEXT = """
form poisson {{ field u: scalar; field q: vector in H1(k - 1); f0[u] = -1; f1[u] = grad(u); f0[q] = q - x; }}
problem p solves poisson {{ mesh = {mesh}; degree = {degree}; dirichlet u = 0; }}
"""


def solved(mesh, degree):
    return wf.parse(TEXT.format(mesh=mesh, degree=degree)).problem().run(kernels="interpreted")


def test_meshio_takes_solutions(tmp_path):
    meshio = pytest.importorskip("meshio")
    solution = solved("box(dim: 2, cells: 3)", 2)
    grid = solution.to_meshio()
    assert grid.points.shape == (49, 3) and grid.cells[0].data.shape == (9, 9)
    np.testing.assert_allclose(grid.point_data["q"][:, 0], grid.points[:, 0], atol=1e-9)
    assert sorted(grid.point_data["u"]) == pytest.approx(sorted(solution.u), abs=1e-12)
    linear = solved("box(dim: 2, cells: 3, cell: tri)", 2)
    linear.to_meshio().write(tmp_path / "u.vtu")
    back = meshio.read(tmp_path / "u.vtu")
    np.testing.assert_array_equal(back.point_data["u"], linear.to_meshio().point_data["u"])


def test_meshes_come_from_meshio_with_their_tags():
    meshio = pytest.importorskip("meshio")
    points = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [1, 1, 0], [2, 1, 0]], float)
    quads = np.array([[0, 1, 4, 3], [1, 2, 5, 4]])
    lines = np.array([[0, 3], [2, 5]])
    physical = [np.array([1, 2]), np.array([7, 8])]
    source = meshio.Mesh(
        points, [("quad", quads), ("line", lines)],
        cell_data={"gmsh:physical": physical}, field_data={"steel": np.array([1, 2]), "left": np.array([7, 1])},
        cell_sets={"all": [np.array([0, 1]), None]},
    )
    mesh = wf.Mesh.from_meshio(source)
    assert {tag: list(own) for tag, own in mesh.cell_tags.items()} == {"2": [1], "all": [0, 1], "steel": [0]}
    assert {tag: sorted(rows.ravel().tolist()) for tag, rows in mesh.facet_tags.items()} == {"left": [0, 3], "8": [2, 5]}
    np.testing.assert_array_equal(mesh.points, points)
    back = wf.Mesh.from_meshio(mesh.to_meshio())
    assert set(back.cell_tags) == set(mesh.cell_tags) and set(back.facet_tags) == set(mesh.facet_tags)
    np.testing.assert_array_equal(back.facet_tags["left"], mesh.facet_tags["left"])
    with pytest.raises(wf.MeshError, match="several kinds"):
        wf.Mesh.from_meshio(meshio.Mesh(points, [("quad", quads[:1]), ("triangle", [[1, 2, 5]])]))


@pytest.mark.parametrize("mesh, degree", [("box(dim: 3, cells: 2)", 3), ("box(dim: 2, cells: 2, cell: tri)", 2)])
def test_pyvista_takes_solutions(mesh, degree):
    pytest.importorskip("pyvista")
    solution = solved(mesh, degree)
    grid = solution.grid()
    dim = 3 if "dim: 3" in mesh else 2
    assert grid.n_cells == solution.cells and set(grid.point_data) >= {"u", "q"}
    np.testing.assert_allclose(grid.point_data["q"][:, 0], grid.points[:, 0], atol=1e-8)
    # The volume by VTK's own quadrature of Lagrange cells.
    sizes = grid.compute_cell_sizes()
    assert sizes["Volume" if dim == 3 else "Area"].sum() == pytest.approx(1, rel=1e-6)


def test_reports_are_plotted():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    text = """
    form heat { field u: scalar; f0[u] = dt(u) + u; }
    problem p solves heat { mesh = box(dim: 2, cells: 1); initial u = 1; time = bdf(order: 2, to: 1, step: 0.25); report m = integral(u); }
    """
    axes = wf.parse(text).problem().run(kernels="interpreted").plot()
    (line,) = axes.lines
    assert len(line.get_xdata()) == 5 and line.get_label() == "m"
