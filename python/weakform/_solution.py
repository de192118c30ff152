"""Solutions of problems, and their displays."""

from __future__ import annotations

import html
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._errors import InvalidValue, PerformanceWarning
from ._grid import Grid, read_vtu

if TYPE_CHECKING:
    from ._system import System

Array = NDArray[np.float64]


def warn_of_kernels(notes: list[str]) -> None:
    """Warns if kernels are interpreted for lack of a compiler."""
    for note in notes:
        warnings.warn(note, PerformanceWarning, stacklevel=3)


class Solution:
    """A solved problem.

    ``solution.u`` and ``solution["u"]`` are read-only views of a field's values at its nodes, of
    shape (nodes,) for a scalar, else (nodes, components).
    """

    def __init__(self, native: _native.Solution) -> None:
        self._own = native

    @property
    def problem(self) -> str:
        """The name of the problem."""
        return self._own.problem

    @property
    def fields(self) -> dict[str, tuple[int, ...]]:
        """The fields with their shapes."""
        return {name: tuple(shape) for name, shape in self._own.fields}

    def __getitem__(self, name: str) -> Array:
        return self._own.view(name)

    def __getattr__(self, name: str) -> Array:
        if not name.startswith("_") and name in self.fields:
            return self._own.view(name)
        raise AttributeError(
            f"a solution of {self.problem!r} has no attribute {name!r}; "
            f"its fields are {', '.join(self.fields)}"
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.fields]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def vector(self) -> Array:
        """All degrees of freedom, field after field; a read-only view."""
        return self._own.vector

    def points(self, name: str | None = None) -> Array:
        """Returns the position of each node of a field, (nodes, 3); by default of the first."""
        return self._own.points(self._first(name))

    def _first(self, name: str | None) -> str:
        return next(iter(self.fields)) if name is None else name

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self._own.cells

    @property
    def dofs(self) -> int:
        """The number of degrees of freedom."""
        return self._own.dofs

    @property
    def iterations(self) -> int:
        """The iterations of the solver."""
        return self._own.iterations

    @property
    def solver(self) -> str:
        """The name of the solver."""
        return self._own.solver

    @property
    def residual(self) -> float:
        """The norm of the residual over the free degrees of freedom."""
        return self._own.residual

    @property
    def residuals(self) -> Array:
        """The residual norm of each iteration."""
        return np.array(self._own.residuals)

    @property
    def energy(self) -> float | None:
        """The energy, if the form has one."""
        return self._own.energy

    @property
    def notes(self) -> list[str]:
        """Remarks on the solution, its mesh and the solve."""
        return self._own.notes

    @property
    def kernels(self) -> str:
        """The origin of the kernels: `cache`, `compiler`, `interpreter` or `ahead of time`."""
        return self._own.kernels

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each phase."""
        return self._own.seconds

    @property
    def reports(self) -> dict[str, Any]:
        """The reports: floats, arrays, and (points, values) of lines."""
        return self._own.reports

    @property
    def history(self) -> list[dict[str, Any]]:
        """Statistics and reports of each step, through time or on adapted meshes."""
        return self._own.history

    @property
    def eigenvalues(self) -> Array:
        """The eigenvalues, of an eigenvalue problem."""
        return np.array(self._own.eigenvalues)

    def mode(self, number: int, name: str | None = None) -> Array:
        """Returns a field of a mode, counted from 0; a read-only view."""
        return self._own.mode(number, self._first(name))

    def error(self, name: str | None = None) -> tuple[float, float] | None:
        """Returns the errors in L2 and H1, if the problem has an exact solution."""
        return self._own.error(self._first(name))

    def to_dict(self) -> dict[str, Any]:
        """Returns the object that `wf run --json` prints."""
        found: dict[str, Any] = json.loads(self._own.summary())
        return found

    def system(self) -> System:
        """Returns the system of the solved problem, with its conditions and data."""
        from ._system import System

        return System._of(self._own.system())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the solution, for ParaView by default."""
        self._own.write(os.fspath(path))

    def _grid(self) -> Grid:
        return read_vtu(self._own.vtu())

    def grid(self) -> Any:
        """Returns a `pyvista.UnstructuredGrid` of Lagrange cells with all fields."""
        import pyvista

        own = self._grid()
        grid = pyvista.UnstructuredGrid(own.vtk_cells(), own.types, own.points)
        grid.point_data.update(own.point_data)
        grid.cell_data.update(own.cell_data)
        return grid

    def to_meshio(self) -> Any:
        """Returns a `meshio.Mesh` with all fields."""
        import meshio
        from meshio._vtk_common import vtk_to_meshio_type

        own = self._grid()
        kind = vtk_to_meshio_type[int(own.types[0])]
        data = {name: [values] for name, values in own.cell_data.items()}
        cells = [(kind, own.cells)]
        return meshio.Mesh(own.points, cells, point_data=own.point_data, cell_data=data)

    def picture(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        field: str | None = None,
        slice: str | None = None,
        warp: float | None = None,
        size: tuple[int, int] | None = None,
        range: tuple[float, float] | None = None,
    ) -> bytes | None:
        """Draws a field to a file, PNG or SVG, or returns a PNG.

        ``slice="z=0.5"`` shows a plane, ``warp=0.1`` displaces points along the field.
        """
        if path is not None:
            self._own.picture(os.fspath(path), field, slice, warp, size, range)
            return None
        with tempfile.TemporaryDirectory() as folder:
            own = os.path.join(folder, "picture.png")
            self._own.picture(own, field, slice, warp, size, range)
            with open(own, "rb") as file:
                return file.read()

    def plot(self, *names: str, ax: Any = None) -> Any:
        """Plots reports over time, adaptive steps or load steps with matplotlib."""
        import matplotlib.pyplot as plt

        rows = self.history
        scalars = [
            name
            for name in self.reports
            if rows and all(isinstance(row.get(name), float) for row in rows)
        ]
        chosen = list(names) or scalars
        wrong = [name for name in chosen if name not in scalars]
        if not chosen or wrong:
            raise InvalidValue(
                f"no report {', '.join(wrong) or 'of this problem'} is a number at each step\n"
                f"help: {'choose of ' + ', '.join(scalars) if scalars else 'add a `report`'}"
            )
        if ax is None:
            _, ax = plt.subplots()
        by_time = all("time" in row for row in rows)
        x = [row["time"] for row in rows] if by_time else list(np.arange(len(rows)))
        for name in chosen:
            ax.plot(x, [row[name] for row in rows], label=name, marker=".")
        ax.set_xlabel("t" if by_time else "step")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        return (
            f"Solution({self.problem!r}, fields={list(self.fields)}, dofs={self.dofs}, "
            f"solver={self.solver!r}, iterations={self.iterations})"
        )

    def _repr_png_(self) -> bytes | None:
        try:
            return self.picture(size=(800, 600))
        except Exception:  # A display never fails.
            return None

    def _repr_html_(self) -> str:
        cells = [
            ("cells", str(self.cells)),
            ("unknowns", str(self.dofs)),
            ("solver", f"{self.solver}, {self.iterations} iterations"),
            ("residual", f"{self.residual:.3e}"),
            ("seconds", f"{self.seconds['total']:.3f}"),
        ]
        if self.energy is not None:
            cells.append(("energy", f"{self.energy:.10g}"))
        history = self.history
        rows = [(html.escape(name), html.escape(value)) for name, value in cells]
        for name, value in self.reports.items():
            line = [row[name] for row in history if isinstance(row.get(name), float)]
            shown = f"{value:.10g}" if isinstance(value, float) else str(value)
            if not isinstance(value, (float, np.ndarray)):
                shown = f"{len(value[0])} points"
            rows.append((html.escape(name), html.escape(shown) + _sparkline(line)))
        rows += [("note", html.escape(note)) for note in self.notes]
        body = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows)
        return f"<b>{html.escape(self.problem)}</b><table>{body}</table>"


def _sparkline(values: list[float]) -> str:
    """Returns a line of numbers as SVG; nothing for less than three."""
    finite = [value for value in values if np.isfinite(value)]
    if len(finite) < 3:
        return ""
    least, most = min(finite), max(finite)
    scale = 18 / ((most - least) or 1.0)
    step = 98 / (len(finite) - 1)
    points = " ".join(
        f"{1 + i * step:.1f},{19 - (value - least) * scale:.1f}" for i, value in enumerate(finite)
    )
    return (
        ' <svg width="100" height="20"><polyline fill="none" stroke="currentColor" '
        f'points="{points}"/></svg>'
    )
