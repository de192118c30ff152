"""Problems that run, and their solutions."""

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import weakform as wf

from conftest import wf as program
from conftest import wf_json

SQUARE = """
/// −Δu = f
form poisson { field u: scalar; param f = 1; f0[u] = -f; f1[u] = grad(u); }
problem square solves poisson {
    mesh = box(dim: 2, cells: 6); degree = 2;
    dirichlet u = 0;
    report mean = integral(u);
    report flux = integral(grad(u));
    report cut = line(u, from: [0, 0.5], to: [1, 0.5], points: 5);
}
"""
HEAT = """
form heat { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }
problem rod solves heat {
    mesh = box(dim: 2, cells: 3);
    initial u = x[0];
    dirichlet u = 0 on "x0";
    time = bdf(order: 2, to: 0.3, step: 0.1);
    report mean = integral(u);
}
"""


@pytest.fixture(scope="module")
def square():
    return wf.parse(SQUARE).problem().run(kernels="interpreted")


def test_fields_are_views_without_copies(square):
    u = square.u
    assert u.shape == (169,) and not u.flags.writeable and not u.flags.owndata
    assert u.__array_interface__["data"] == square["u"].__array_interface__["data"]
    assert np.shares_memory(u, square.vector)
    with pytest.raises(ValueError):
        u[0] = 1
    with pytest.raises(KeyError, match="there is no field `v`"):
        square["v"]
    with pytest.raises(AttributeError, match="its fields are u"):
        square.v
    assert list(square) == ["u"] and "u" in dir(square)


def test_views_outlive_the_solution():
    u = wf.parse(SQUARE).problem().run(kernels="interpreted").u
    gc.collect()
    assert np.isfinite(u).all() and u.max() > 0.05


def test_points_belong_to_values(square):
    x = square.points("u")
    assert x.shape == (169, 3)
    # The series solution of −Δu = 1 on the unit square.
    k = np.arange(1, 60, 2)
    a, b = np.meshgrid(k, k, indexing="ij")
    factors = 16 / (np.pi**4 * a * b * (a**2 + b**2))
    exact = np.einsum("ab,ap,bp->p", factors, np.sin(np.pi * np.outer(k, x[:, 0])), np.sin(np.pi * np.outer(k, x[:, 1])))
    assert np.abs(square.u - exact).max() < 2e-4


def test_reports_are_floats_arrays_and_lines(square):
    reports = square.reports
    assert isinstance(reports["mean"], float) and abs(reports["mean"] - 0.0351) < 1e-4
    assert reports["flux"].shape == (2,)
    points, values = reports["cut"]
    assert points.shape == (5, 3) and values.shape == (5,) and values[0] == pytest.approx(0, abs=1e-12)
    assert square.energy == pytest.approx(-reports["mean"] / 2, rel=1e-9)
    assert square.iterations >= 0 and square.seconds["total"] > 0 and square.dofs == 169


def test_to_dict_equals_wf_run_json(tmp_path):
    path = tmp_path / "square.wf"
    path.write_text(SQUARE)
    other = wf_json("run", str(path), "--no-output", "--interpret", "--degree", "3", "--param", "f=2.5")
    own = wf.load(path).problem().run(degree=3, f=2.5, kernels="interpreted").to_dict()
    measured = {"seconds", "dofs_per_second"}
    for step in (*own["steps"], *other["steps"]):
        step.pop("seconds")
    only_there = {"profile", "warnings"}
    assert set(other) - only_there == set(own)
    for key in set(own) - measured:
        assert own[key] == other[key], key


def test_parameters_and_settings_are_keyword_arguments():
    problem = wf.parse(SQUARE).problem("square")
    one = problem.run(kernels="interpreted", refine=1)
    assert one.cells == 144
    double = problem.run(f=np.float32(2), kernels="interpreted", mesh="box(dim: 2, cells: 2)")
    half = problem.run(params={"f": 1}, kernels="interpreted", mesh="box(dim: 2, cells: 2)")
    np.testing.assert_allclose(double.u, 2 * half.u, atol=1e-12)
    with pytest.raises(KeyError, match="did you mean `degree`"):
        problem.run(degre=3)
    with pytest.raises(wf.InvalidValue, match="`kernels` cannot be"):
        problem.run(kernels="quick")
    with pytest.raises(wf.LanguageError, match="degree"):
        problem.run(degree=99)


def test_operators_and_solvers_agree(square):
    other = wf.parse(SQUARE).problem().run(operator="assembled", solver="cg(rtol: 1e-12)", kernels="interpreted")
    assert other.solver == "cg"
    np.testing.assert_allclose(other.u, square.u, atol=1e-9)


def test_history_has_a_row_for_each_step(tmp_path):
    problem = wf.parse(HEAT).problem()
    seen = []
    run = problem.run(kernels="interpreted", progress=lambda kind, what: seen.append((kind, what)))
    times = [row["time"] for row in run.history]
    np.testing.assert_allclose(times, [0, 0.1, 0.2, 0.3], atol=1e-12)
    assert run.history[-1]["mean"] == run.reports["mean"]
    assert run.history[0]["mean"] == pytest.approx(0.5, abs=0.06)
    kinds = {kind for kind, _ in seen}
    assert {"time", "step"} <= kinds
    assert [what["reports"]["mean"] for kind, what in seen if kind == "step"] == [row["mean"] for row in run.history]
    # The rest of a run from a checkpoint has the same bits.
    left = tmp_path / "left.npy"
    problem.run(kernels="interpreted", checkpoint=left)
    assert left.exists()


def test_a_run_ends_when_its_observer_says_so():
    problem = wf.parse(SQUARE).problem()
    residuals = []

    def observe(kind, what):
        if kind == "iteration":
            residuals.append(what[1])
            return len(residuals) < 3

    with pytest.raises(wf.NotConverged, match="stopped") as caught:
        problem.run(solver="cg(rtol: 1e-14)", kernels="interpreted", progress=observe)
    assert len(residuals) == 3 and caught.value.report == {"iterations": 2, "residuals": residuals}

    def broken(kind, what):
        raise ZeroDivisionError("of the observer")

    with pytest.raises(ZeroDivisionError, match="of the observer"):
        problem.run(solver="cg", kernels="interpreted", progress=broken)


def test_solves_without_a_solution_say_what_they_reached():
    text = """
    form bad { field u: scalar; f0[u] = u^2 + 1; f1[u] = 0.01 * grad(u); }
    problem none solves bad { mesh = box(dim: 2, cells: 2); initial u = 1; solver = newton(max_iterations: 4); }
    """
    with pytest.raises(wf.NotConverged) as caught:
        wf.parse(text).problem().run(kernels="interpreted")
    assert len(caught.value.report["residuals"]) > 1
    assert caught.value.solution["u"].shape == (9,)


def test_errors_of_meshes():
    problem = wf.parse(SQUARE).problem()
    with pytest.raises(wf.MeshError, match="nothing.msh"):
        problem.run(mesh="nothing.msh")


def test_modes_of_an_eigenvalue_problem():
    text = """
    form laplace { field u: scalar; f1[u] = grad(u); }
    problem membrane solves laplace { mesh = box(dim: 2, cells: 4); degree = 4; dirichlet u = 0; eigen = smallest(2); }
    """
    run = wf.parse(text).problem().run(kernels="interpreted")
    np.testing.assert_allclose(run.eigenvalues, [2 * np.pi**2, 5 * np.pi**2], rtol=1e-3)
    assert run.mode(1).shape == run.u.shape
    np.testing.assert_array_equal(run.mode(0), run.u)


def test_files_and_pictures(square, tmp_path):
    square.write(tmp_path / "u.vtu")
    assert (tmp_path / "u.vtu").read_bytes()[:5] == b"<?xml"
    png = square.picture()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    square.picture(tmp_path / "u.svg", size=(300, 200))
    assert b"<svg" in (tmp_path / "u.svg").read_bytes()
    assert square._repr_png_()[:4] == b"\x89PNG"
    html = square._repr_html_()
    assert "169" in html and "mean" in html
    assert "<svg" in wf.parse(HEAT).problem().run(kernels="interpreted")._repr_html_()


def test_the_program_has_its_exit_status(tmp_path):
    assert program("--version").stdout.startswith("wf ")
    bad = tmp_path / "bad.wf"
    bad.write_text("form a { f0[u] = 1; }")
    assert program("check", str(bad)).returncode == 1
    assert program("no-such-command").returncode == 2


LONG = """
form slow { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }
problem slow solves slow {
    mesh = box(dim: 2, cells: 8);
    initial u = x[0];
    time = bdf(order: 1, to: 1000, step: 0.001);
}
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_an_interrupt_ends_a_run(tmp_path):
    code = f"""
    import weakform as wf
    problem = wf.parse({LONG!r}).problem()
    def started(kind, what):
        if kind == "time":
            print("running", flush=True)
    try:
        problem.run(kernels="interpreted", progress=started)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "running\n"
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert rest.splitlines()[-1] == "interrupted" and process.returncode == 0
    assert time.monotonic() - begun < 30


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_an_interrupt_ends_the_program(tmp_path):
    from conftest import script

    path = tmp_path / "slow.wf"
    path.write_text(LONG)
    # The first time is written before the run goes on.
    pattern = str(tmp_path / "u-{step}.vtu")
    process = subprocess.Popen([*script(), "run", str(path), "--interpret", "-o", pattern])
    for _ in range(600):
        if list(tmp_path.glob("u-*.vtu")):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == -signal.SIGINT


def test_threads_and_devices():
    assert wf.set_threads(1) == 1
    with pytest.raises(ValueError):
        wf.set_threads(0)
    assert wf.set_threads(os.cpu_count() or 1) >= 1
    assert wf.devices()[0] == "cpu"
    with pytest.raises(wf.InvalidValue, match="`device` cannot be"):
        wf.parse(SQUARE).problem().run(device="abacus")


def test_the_gil_is_free_during_a_run():
    import threading

    ticks, done = [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=count)
    thread.start()
    begun = time.monotonic()
    wf.parse(SQUARE).problem().run(kernels="interpreted", refine=3)
    ended = time.monotonic()
    done.set()
    thread.join()
    inside = [tick for tick in ticks if begun <= tick <= ended]
    gaps = np.diff([begun, *inside, ended])
    assert len(inside) > 3 and gaps.max() < 0.5 * (ended - begun) + 0.05


def test_without_a_compiler_there_is_a_warning(tmp_path):
    code = f"""
    import warnings, weakform as wf
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wf.parse({SQUARE!r}).problem().run(kernels="compiled")
    print([w.category.__name__ for w in caught])
    """
    own = {**os.environ, "PATH": str(tmp_path), "WF_RUSTC": "", "WF_CC": "", "WF_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=own, capture_output=True, text=True)
    assert "PerformanceWarning" in done.stdout, done.stdout + done.stderr


def test_summaries_are_json(square):
    assert json.loads(json.dumps(square.to_dict()))["problem"] == "square"
