"""Grids of Lagrange cells for other programs, from the VTU file of a solution in memory."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES: dict[str, np.dtype[Any]] = {"Float64": np.dtype("<f8"), "Int64": np.dtype("<i8"), "UInt8": np.dtype("u1")}


@dataclass
class Grid:
    """Points, cells in VTK's order of nodes, and data at both."""

    points: NDArray[np.float64]
    cells: NDArray[np.int64]
    types: NDArray[np.uint8]
    point_data: dict[str, NDArray[Any]]
    cell_data: dict[str, NDArray[Any]]

    def vtk_cells(self) -> NDArray[np.int64]:
        """Returns the cells with the number of nodes before each."""
        count, width = self.cells.shape
        counts = np.full((count, 1), width, dtype=np.int64)
        return np.hstack([counts, self.cells]).ravel()


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
