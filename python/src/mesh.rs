//! Meshes: generated, read, or made of arrays, with the caller's numbers of points and cells.

use crate::errors::{exception, raised};
use crate::watch::outside;
use numpy::{PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use weakform::meshes::{Cell, MeshError};

/// A mesh.
#[pyclass(frozen, module = "weakform._native")]
pub(crate) struct Mesh(pub(crate) Arc<weakform::Mesh>);

/// Tags of the caller: names with rows of numbers.
type Tags<'py> = Vec<(String, PyReadonlyArray2<'py, u32>)>;

#[pymethods]
impl Mesh {
    /// Creates a mesh with a generator of the language, or reads a file.
    #[staticmethod]
    fn of_text(py: Python<'_>, text: &str) -> PyResult<Self> {
        let mesh = outside(py, || weakform::mesh(text))?;
        mesh.map(|mesh| Self(Arc::new(mesh))).map_err(|error| raised(py, error))
    }

    /// Reads a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let mesh = outside(py, || weakform::Mesh::read(path))?;
        mesh.map(|mesh| Self(Arc::new(mesh))).map_err(|error| raised(py, error.into()))
    }

    /// Creates a mesh from arrays; cells list their nodes in VTK's order, facets and edges their vertices.
    #[staticmethod]
    #[pyo3(signature = (points, cells, cell, order, cell_tags, facet_tags, edge_tags, vertex_tags))]
    fn of_arrays(
        py: Python<'_>,
        points: PyReadonlyArray2<'_, f64>,
        cells: PyReadonlyArray2<'_, u32>,
        cell: &str,
        order: usize,
        cell_tags: Tags<'_>,
        facet_tags: Tags<'_>,
        edge_tags: Tags<'_>,
        vertex_tags: Tags<'_>,
    ) -> PyResult<Self> {
        let cell: Cell = match cell.parse() {
            Ok(cell) => cell,
            Err(error) => return Err(exception(py, "MeshError", (format!("{error}"),))?),
        };
        let (points, cells) = (points.as_array(), cells.as_array());
        let mut places = vec![[0.0; 3]; points.nrows()];
        for (place, row) in places.iter_mut().zip(points.rows()) {
            place.iter_mut().zip(row).for_each(|(to, from)| *to = *from);
        }
        let given: Vec<u32> = cells.iter().copied().collect();
        let Some(nodes) = weakform::meshes::from_vtk(cell, order, cells.ncols(), &given) else {
            let text = format!(
                "cells of {} nodes are no {} cells of order {order}",
                cells.ncols(),
                cell.name()
            );
            return Err(exception(py, "MeshError", (text,))?);
        };
        let mut builder = weakform::Mesh::from_arrays(cell, places, nodes).order(order);
        for (tag, rows) in &cell_tags {
            let own: Vec<u32> = rows.as_array().iter().copied().collect();
            builder = builder.cells(tag, &own);
        }
        for (tag, rows) in &facet_tags {
            builder = builder.facets(tag, &padded::<4>(&rows.as_array()));
        }
        for (tag, rows) in &edge_tags {
            builder = builder.edges(tag, &padded::<2>(&rows.as_array()));
        }
        for (tag, rows) in &vertex_tags {
            let own: Vec<u32> = rows.as_array().iter().copied().collect();
            builder = builder.vertices(tag, &own);
        }
        let made = outside(py, move || builder.build())?;
        let failed = |error: MeshError| exception(py, "MeshError", (error.to_string(),));
        match made {
            Ok(mesh) => Ok(Self(Arc::new(mesh))),
            Err(error) => Err(failed(error)?),
        }
    }

    #[getter]
    fn dim(&self) -> usize {
        self.0.dim()
    }

    #[getter]
    fn cell(&self) -> &'static str {
        self.0.cell().name()
    }

    #[getter]
    fn order(&self) -> usize {
        self.0.order()
    }

    #[getter]
    fn n_cells(&self) -> usize {
        self.0.n_cells()
    }

    #[getter]
    fn n_vertices(&self) -> usize {
        self.0.n_vertices()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes().to_vec()
    }

    /// The coordinates of all geometry nodes, vertices first, in the program's order.
    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::memory::views::points(py, self.0.points())
    }

    /// The nodes of each cell in the program's order, those of a cell in VTK's order.
    #[getter]
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let nodes = weakform::meshes::to_vtk(&self.0);
        PyArray1::from_vec(py, nodes).reshape([self.0.n_cells(), self.0.nodes_per_cell()])
    }

    /// The caller's number of each cell; in the order of data of a file.
    #[getter]
    fn cell_numbers<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let rows = self.0.cell_rows().swap_remove(0);
        PyArray1::from_vec(py, rows.of)
    }

    /// The caller's number of each point, 2³² − 1 for none; `None` if they have no order of the caller.
    #[getter]
    fn point_numbers<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u32>>> {
        self.0.point_rows().map(|rows| PyArray1::from_vec(py, rows.of))
    }

    /// The cells of each tag, in the program's order.
    #[getter]
    fn cell_tags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (tag, cells) in self.0.cell_tags() {
            all.set_item(tag, PyArray1::from_slice(py, cells))?;
        }
        Ok(all)
    }

    /// The vertices of the facets of each tag.
    #[getter]
    fn facet_tags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        let corners = self.0.cell().facets();
        for (tag, facets) in self.0.facet_tags() {
            let rows: Vec<u32> = facets
                .iter()
                .flat_map(|facet| {
                    let own = self.0.vertices(facet.cell as usize);
                    corners[usize::from(facet.local)].iter().map(|&vertex| own[vertex])
                })
                .collect();
            let width = facets.first().map_or(0, |facet| corners[usize::from(facet.local)].len());
            let rows = PyArray1::from_vec(py, rows).reshape([facets.len(), width])?;
            all.set_item(tag, rows)?;
        }
        Ok(all)
    }
}

impl Mesh {
    /// Returns rows of the caller in the order of the program's cells or nodes, if the mesh has such an order.
    pub(crate) fn arranged(
        mesh: &weakform::Mesh,
        values: &PyReadonlyArray1<'_, f64>,
        components: usize,
    ) -> Option<Vec<f64>> {
        let values = values.as_slice().ok()?;
        let rows = values.len() / components.max(1);
        let cells = mesh.cell_rows().into_iter().map(|rows| (mesh.n_cells(), rows));
        let points = mesh.point_rows().into_iter().map(|rows| (mesh.n_vertices(), rows));
        let (count, order) =
            cells.chain(points).find(|(_, order)| order.count == rows && rows > 0)?;
        let own = |row: &u32| values.get(*row as usize * components..)?.get(..components);
        let all: Option<Vec<&[f64]>> = order.of.iter().take(count).map(own).collect();
        Some(all?.concat())
    }
}

/// Returns rows of vertices, padded.
fn padded<const N: usize>(rows: &numpy::ndarray::ArrayView2<'_, u32>) -> Vec<[u32; N]> {
    let row = |row: numpy::ndarray::ArrayView1<'_, u32>| {
        let mut all = [u32::MAX; N];
        all.iter_mut().zip(row).for_each(|(to, from)| *to = *from);
        all
    };
    rows.rows().into_iter().map(row).collect()
}
