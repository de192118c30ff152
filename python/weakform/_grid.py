"""Grids of Lagrange cells for other programs, from the VTU file of a solution in memory."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES: dict[str, np.dtype[Any]] = {"Float64": np.dtype("<f8"), "Int64": np.dtype("<i8"), "UInt8": np.dtype("u1")}


_LAGRANGE_HEXAHEDRON = 72


@dataclass
class Grid:
    """Points, cells with the order of nodes of VTK files of version 1.0, and data at both."""

    points: NDArray[np.float64]
    cells: NDArray[np.int64]
    types: NDArray[np.uint8]
    point_data: dict[str, NDArray[Any]]
    cell_data: dict[str, NDArray[Any]]

    def vtk_cells(self) -> NDArray[np.int64]:
        """Returns the cells with the number of nodes before each, in the order of VTK 9.

        Files of version 1.0 have the order before VTK 9, with the last two edges of Lagrange hexahedra exchanged.
        """
        count, width = self.cells.shape
        cells = self.cells
        if (self.types == _LAGRANGE_HEXAHEDRON).any():
            inside = round(width ** (1 / 3)) - 2
            third, fourth = 8 + 10 * inside, 8 + 11 * inside
            order = np.arange(width)
            order[third : fourth + inside] = np.roll(order[third : fourth + inside], inside)
            cells = cells[:, order]
        counts = np.full((count, 1), width, dtype=np.int64)
        return np.hstack([counts, cells]).ravel()


def read_vtu(content: bytes) -> Grid:
    """Returns the grid of a VTU file with appended raw data; arrays are views of it."""
    mark = b'<AppendedData encoding="raw">'
    end = content.index(mark) + len(mark)
    start = content.index(b"_", end) + 1
    header = content[: end - len(mark)] + b"</VTKFile>"
    piece = ElementTree.fromstring(header).find("UnstructuredGrid/Piece")
    assert piece is not None

    def array(element: ElementTree.Element) -> NDArray[Any]:
        first = start + int(element.get("offset", "0"))
        size = int(np.frombuffer(content, "<u8", 1, first)[0])
        kind = _TYPES[element.get("type", "Float64")]
        values: NDArray[Any] = np.frombuffer(content, kind, size // kind.itemsize, first + 8)
        components = int(element.get("NumberOfComponents", "1"))
        return values if components == 1 else values.reshape(-1, components)

    def arrays(section: str) -> dict[str, NDArray[Any]]:
        assert piece is not None
        return {own.get("Name", ""): array(own) for own in piece.iterfind(f"{section}/DataArray")}

    cells, points = arrays("Cells"), arrays("Points")["Points"]
    types = cells["types"]
    return Grid(
        points=points,
        cells=cells["connectivity"].reshape(len(types), -1),
        types=types,
        point_data=arrays("PointData"),
        cell_data=arrays("CellData"),
    )
