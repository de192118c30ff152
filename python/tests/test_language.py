"""Files, forms and their errors."""

import logging

import pytest
import weakform as wf

POISSON = "form poisson { field u: scalar; param f = 1; f0[u] = -f; f1[u] = grad(u); }"


def test_a_file_has_forms_and_problems(examples):
    file = wf.load(examples / "poisson.wf")
    assert file.forms == ["poisson"] and len(file.problems) >= 1
    assert file.form().name == "poisson" and file.form().text == file.text
    assert "Form('poisson'" in repr(file.form())


def test_forms_name_their_parts():
    form = wf.Form("form a { field u: vector; param g: vector = x0 * [0, 1]; param x0 = 2; aux c: scalar on cells; f0[u] = c * u - g; }")
    assert form.dimensions == [2]
    assert form.fields() == {"u": (2,)}
    assert form.params() == {"g": (2,), "x0": ()}
    assert form.data() == {"c": ()}
    assert "fn " in form.emit() and "f0" in form.emit("simplify")


def test_errors_of_the_language_underline_the_place():
    with pytest.raises(wf.LanguageError) as caught:
        wf.parse("form a {\n    field u: scalar;\n    f0[u] = kappa * u;\n}")
    (found,) = caught.value.diagnostics
    assert (found["line"], found["column"], found["severity"]) == (3, 13, "error")
    text = str(caught.value)
    assert "f0[u] = kappa * u;" in text and "^^^^^" in text
    assert isinstance(caught.value, wf.Error)


def test_unknown_names_have_the_nearest():
    file = wf.parse(POISSON)
    with pytest.raises(KeyError, match="did you mean `poisson`"):
        file.form("poison")
    with pytest.raises(wf.InvalidValue, match="0 problems"):
        file.problem()


def test_warnings_are_warned_and_logged(caplog):
    text = "form a { field u: scalar; param unused = 1; f0[u] = u; }"
    with caplog.at_level(logging.WARNING, "weakform"), pytest.warns(wf.LanguageWarning, match="unused"):
        file = wf.parse(text)
    assert file.warnings[0]["message"] == "the parameter `unused` is never used"
    assert any("unused" in record.message for record in caplog.records)


def test_files_that_cannot_be_read():
    with pytest.raises(wf.Error, match="cannot read nothing.wf"):
        wf.load("nothing.wf")


def test_forms_display_their_equations():
    html = wf.Form(POISSON)._repr_html_()
    assert "<table>" in html and "grad(u)" in html and "<code>f</code>" in html
