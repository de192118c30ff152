"""Every block of docs/python.md, in order."""

import re

import pytest

from conftest import ROOT


def test_the_page_runs(tmp_path, monkeypatch):
    pytest.importorskip("meshio")
    pytest.importorskip("basix")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "python.md").read_text()
    file = None
    names: dict = {}
    blocks = 0
    for paragraph, kind, block in re.findall(r"([^\n]*)\n+```(\w+)\n(.*?)```", page, re.S):
        if kind == "wf":
            file = re.search(r"`([\w.]+\.wf)`", paragraph)
            (tmp_path / file.group(1)).write_text(block)
        elif kind == "python":
            line = page[: page.index(block)].count("\n")
            exec(compile("\n" * line + block, "docs/python.md", "exec"), names)
            blocks += 1
    assert file is not None and blocks == 9


def test_the_readme_runs():
    text = (ROOT / "python" / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(compile(block, "python/README.md", "exec"), {})
