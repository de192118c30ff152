"""The notebook runs, and shows a form, a solution and its picture."""

import pytest

from conftest import ROOT


def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(ROOT / "python" / "poisson.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    shown = [output["data"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert any("form poisson" in data.get("text/html", "") for data in shown)
    assert any("image/png" in data and "mean" in data.get("text/html", "") for data in shown)
