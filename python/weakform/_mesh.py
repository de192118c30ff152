"""Meshes: generated, read, or made of arrays."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._errors import MeshError

Integers = NDArray[np.integer[Any]]

#: Names of cells in meshio, with our name and the order of their geometry.
CELLS = {
    "line": ("interval", 1),
    "interval": ("interval", 1),
    "line3": ("interval", 2),
    "triangle": ("tri", 1),
    "tri": ("tri", 1),
    "triangle6": ("tri", 2),
    "quad": ("quad", 1),
    "quadrilateral": ("quad", 1),
    "quad9": ("quad", 2),
    "tetra": ("tet", 1),
    "tet": ("tet", 1),
    "tetrahedron": ("tet", 1),
    "tetra10": ("tet", 2),
    "hexahedron": ("hex", 1),
    "hex": ("hex", 1),
    "hexahedron27": ("hex", 2),
}
#: Their names in meshio.
MESHIO = {
    (own, order): name
    for name, (own, order) in CELLS.items()
    if name not in ("interval", "tri", "quadrilateral", "tet", "tetrahedron", "hex")
}
#: Names of Lagrange cells of any order in meshio, with our name; their nodes are in the order of VTK 9.
LAGRANGE = {
    "VTK_LAGRANGE_CURVE": "interval",
    "VTK_LAGRANGE_TRIANGLE": "tri",
    "VTK_LAGRANGE_QUADRILATERAL": "quad",
    "VTK_LAGRANGE_TETRAHEDRON": "tet",
    "VTK_LAGRANGE_HEXAHEDRON": "hex",
}
DIMENSIONS = {"interval": 1, "tri": 2, "quad": 2, "tet": 3, "hex": 3}
#: Types of facets in meshio, and their number of vertices.
FACETS = {
    "interval": {"vertex": 1},
    "tri": {"line": 2, "line3": 2, "VTK_LAGRANGE_CURVE": 2},
    "quad": {"line": 2, "line3": 2, "VTK_LAGRANGE_CURVE": 2},
    "tet": {"triangle": 3, "triangle6": 3, "VTK_LAGRANGE_TRIANGLE": 3},
    "hex": {"quad": 4, "quad9": 4, "VTK_LAGRANGE_QUADRILATERAL": 4},
}


def _own_name(cell: str) -> str | None:
    """Returns our name of a kind of cells of meshio; `None` for others."""
    return CELLS[cell][0] if cell in CELLS else LAGRANGE.get(cell)


def _nodes(cell: str, order: int) -> int:
    """Returns the number of nodes of a cell."""
    dim = DIMENSIONS[cell]
    return comb(order + dim, dim) if cell in ("tri", "tet") else (order + 1) ** dim


def _order(cell: str, kind: str, nodes: int) -> int:
    """Returns the order of cells of a kind of meshio with so many nodes."""
    if kind in CELLS:
        return CELLS[kind][1]
    order = 1
    while _nodes(cell, order) < nodes:
        order += 1
    if _nodes(cell, order) == nodes:
        return order
    known = ", ".join(str(_nodes(cell, order)) for order in range(1, 5))
    raise MeshError(f"`cells` has {nodes} columns\nhelp: cells of the kind {kind!r} have {known}, … nodes")


def mesh(text: str) -> Mesh:
    """Creates a mesh with a generator of the language, ``mesh("box(dim: 2, cells: 8)")``, or reads
    a file of Gmsh, VTK or Abaqus."""
    return Mesh._of(_native.Mesh.of_text(text))


class Mesh:
    """A mesh of one kind of cell.

    ``points`` has a row of one to three coordinates for each point, ``cells`` a row of points for
    each cell in VTK's order (that of meshio and pyvista), ``cell`` is a name of meshio, such as
    ``"hexahedron"`` or ``"triangle6"``; ``"VTK_LAGRANGE_HEXAHEDRON"`` and the like have any order, which
    follows from the number of columns. ``cell_tags`` has for each tag numbers of cells,
    ``facet_tags`` rows of vertices; ``edge_tags`` and ``vertex_tags`` are for essential conditions.

    The program sorts cells and points. Results of this class are in the caller's numbers.
    """

    _own: _native.Mesh

    def __init__(
        self,
        points: ArrayLike,
        cells: ArrayLike,
        cell: str,
        *,
        cell_tags: Mapping[str, ArrayLike] | None = None,
        facet_tags: Mapping[str, ArrayLike] | None = None,
        edge_tags: Mapping[str, ArrayLike] | None = None,
        vertex_tags: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        name = _own_name(cell)
        if name is None:
            known = ", ".join([*CELLS, *LAGRANGE])
            raise MeshError(f"cells of the kind {cell!r} are not supported\nhelp: they are {known}")
        places = np.ascontiguousarray(points, dtype=np.float64)
        if places.ndim != 2 or not 1 <= places.shape[1] <= 3:
            raise MeshError(
                f"`points` has the shape {places.shape}, not (points, 1 to 3 coordinates)"
            )
        rows = _rows("cells", cells, len(places))
        self._own = _native.Mesh.of_arrays(
            places,
            rows,
            name,
            _order(name, cell, rows.shape[1]),
            _tags(cell_tags, len(np.asarray(cells)), column=True),
            _tags(facet_tags, len(places), column=name == "interval"),
            _tags(edge_tags, len(places)),
            _tags(vertex_tags, len(places), column=True),
        )

    @classmethod
    def _of(cls, native: _native.Mesh) -> Mesh:
        own = cls.__new__(cls)
        own._own = native
        return own

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Mesh:
        """Reads a file of Gmsh, VTK or Abaqus."""
        return cls._of(_native.Mesh.read(os.fspath(path)))

    @classmethod
    def from_meshio(cls, source: Any) -> Mesh:
        """Converts a `meshio.Mesh`.

        Cells of the highest dimension are those of the mesh. Tags are its cell sets, and the values
        of the integer cell data ``gmsh:physical`` and ``medit:ref``, whose names in ``field_data``
        are used where they have any.
        """
        blocks = [(block.type, np.asarray(block.data)) for block in source.cells]
        known = {kind: name for kind, _ in blocks if (name := _own_name(kind)) is not None}
        if not known:
            raise MeshError(f"the mesh has no known cells, only {[kind for kind, _ in blocks]}")
        dim = max(DIMENSIONS[name] for name in known.values())
        kinds = {kind for kind, name in known.items() if DIMENSIONS[name] == dim}
        if len(kinds) != 1:
            raise MeshError(
                f"the mesh has cells of several kinds: {', '.join(sorted(kinds))}\n"
                "help: divide them into cells of one kind"
            )
        kind = kinds.pop()
        facets = FACETS[known[kind]]
        starts, count = [], 0
        for own, rows in blocks:
            starts.append(count)
            count += len(rows) if own == kind else 0
        cell_tags: dict[str, list[Integers]] = {}
        facet_tags: dict[str, list[Integers]] = {}

        def add(tag: str, block: int, chosen: Integers) -> None:
            own, rows = blocks[block]
            if own == kind:
                cell_tags.setdefault(tag, []).append(chosen + starts[block])
            elif own in facets:
                facet_tags.setdefault(tag, []).append(rows[chosen, : facets[own]])

        for tag, sets in (source.cell_sets or {}).items():
            if tag.startswith("gmsh:"):
                continue
            for block, chosen in enumerate(sets):
                if chosen is not None and len(chosen):
                    add(tag, block, np.asarray(chosen, dtype=np.int64))
        for key in ("gmsh:physical", "medit:ref"):
            for block, values in enumerate(source.cell_data.get(key, [])):
                own, _ = blocks[block]
                if own != kind and own not in facets:
                    continue
                own_dim = dim if own == kind else dim - 1
                names = {
                    int(number): tag
                    for tag, (number, at) in (source.field_data or {}).items()
                    if int(at) == own_dim
                }
                for number in np.unique(np.asarray(values)):
                    tag = names.get(int(number), str(int(number)))
                    if tag not in (source.cell_sets or {}):
                        add(tag, block, np.flatnonzero(np.asarray(values) == number))
        points = np.asarray(source.points, dtype=np.float64)
        cells = np.concatenate([rows for own, rows in blocks if own == kind])
        return cls(
            points,
            cells,
            kind,
            cell_tags={tag: np.concatenate(own) for tag, own in cell_tags.items()},
            facet_tags={tag: np.concatenate(own) for tag, own in facet_tags.items()},
        )

    def to_meshio(self) -> Any:
        """Returns a `meshio.Mesh` with the tags as cell sets."""
        import meshio

        of_any_order = {own: name for name, own in LAGRANGE.items()}
        kind = MESHIO.get((self.cell, self.order), of_any_order[self.cell])
        cells = [(kind, self.cells)]
        sets: dict[str, list[Any]] = {}
        facets = {tag: rows for tag, rows in self.facet_tags.items() if len(rows)}
        names = {1: "vertex", 2: "line", 3: "triangle", 4: "quad"}
        for tag, rows in facets.items():
            sets[tag] = [None] * len(cells)
            cells.append((names[rows.shape[1]], rows))
        for number, tag in enumerate(facets):
            sets[tag] = [[]] * (len(facets) + 1)
            sets[tag][number + 1] = np.arange(len(facets[tag]))
        for tag, own in self.cell_tags.items():
            sets.setdefault(tag, [[]] * (len(facets) + 1))[0] = own
        return meshio.Mesh(self.points, cells, cell_sets=sets)

    @property
    def dim(self) -> int:
        """The dimension."""
        return self._own.dim

    @property
    def cell(self) -> str:
        """The kind of the cells: `interval`, `tri`, `quad`, `tet` or `hex`."""
        return self._own.cell

    @property
    def order(self) -> int:
        """The order of the geometry."""
        return self._own.order

    @property
    def notes(self) -> list[str]:
        """Changes that made the input usable."""
        return self._own.notes

    @property
    def cell_numbers(self) -> NDArray[np.uint32]:
        """The caller's number of each cell of the program."""
        return self._own.cell_numbers

    @property
    def point_numbers(self) -> NDArray[np.uint32]:
        """The caller's number of each point of the program."""
        found = self._own.point_numbers
        if found is None:
            return np.arange(len(self._own.points), dtype=np.uint32)
        return found

    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the program's number of each point and of each cell of the caller."""
        points, cells = self.point_numbers, self.cell_numbers
        of_points = np.full(int(points.max()) + 1, -1, dtype=np.int64)
        of_points[points] = np.arange(len(points))
        return of_points, np.argsort(cells, kind="stable")

    @property
    def points(self) -> NDArray[np.float64]:
        """The coordinates of the points, (points, 3); NaN for points that no cell has."""
        numbers, _ = self._sorted()
        points = self._own.points
        return np.where((numbers >= 0)[:, None], points[np.maximum(numbers, 0)], np.nan)

    @property
    def cells(self) -> NDArray[np.uint32]:
        """The points of each cell in VTK's order; the program may have turned cells."""
        _, order = self._sorted()
        return self.point_numbers[self._own.cells[order]]

    @property
    def cell_tags(self) -> dict[str, NDArray[np.uint32]]:
        """The cells of each tag."""
        tags = self._own.cell_tags
        return {tag: np.sort(self.cell_numbers[own]) for tag, own in tags.items()}

    @property
    def facet_tags(self) -> dict[str, NDArray[np.uint32]]:
        """The vertices of the facets of each tag."""
        tags = self._own.facet_tags
        return {tag: self.point_numbers[own] for tag, own in tags.items()}

    def __len__(self) -> int:
        return self._own.n_cells

    def __repr__(self) -> str:
        return f"Mesh({len(self)} {self.cell} cells of order {self.order}, dim={self.dim})"


def _rows(what: str, values: ArrayLike, count: int) -> NDArray[np.uint32]:
    array = np.asarray(values)
    if array.ndim != 2 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise MeshError(f"`{what}` has the shape {array.shape} and the type {array.dtype}, not rows of integers")
    if array.size and not (0 <= array.min() and array.max() < count):
        raise MeshError(f"`{what}` has numbers from {array.min()} to {array.max()}, of {count}")
    return np.ascontiguousarray(array, dtype=np.uint32)


def _tags(
    tags: Mapping[str, ArrayLike] | None, count: int, *, column: bool = False
) -> list[tuple[str, NDArray[np.uint32]]]:
    found = []
    for tag, values in (tags or {}).items():
        if not re.fullmatch(r"[^\"\\\n]+", tag):
            raise MeshError(f"{tag!r} cannot be a tag\nhelp: leave out quotes and line breaks")
        array = np.asarray(values)
        if array.dtype == bool:
            array = np.flatnonzero(array)
        if column and array.ndim == 1:
            array = array[:, None]
        found.append((tag, _rows(f"tag {tag}", array, count)))
    return found
