"""A CUDA vector as an array of CuPy without a copy, and back.

Run by hand on a machine with a GPU: `python python/tests/device.py`. Needs the wheel and CuPy.
"""

import sys

import numpy as np
import weakform as wf

POISSON = "form poisson { field u: vector; param f = 1; f0[u] = -f * [1, 2]; f1[u] = grad(u); }"


def main() -> int:
    if "cuda" not in wf.devices():
        print("skipped: no CUDA device")
        return 0
    form, mesh = wf.Form(POISSON), wf.mesh("box(dim: 2, cells: 24)")
    host = form.on(mesh, degree=3).dirichlet("u", 0.0)
    system = form.on(mesh, degree=3, device="cuda:0").dirichlet("u", 0.0)
    u = system.solve(system.vector())
    expected = host.solve()
    assert isinstance(u, wf.Vector) and u.__dlpack_device__() == (2, 0)
    np.testing.assert_allclose(u.to_numpy(), expected, atol=1e-9)
    interface = u.__cuda_array_interface__
    assert interface["version"] == 3 and interface["typestr"] == "<f8"
    # A problem on the device.
    text = POISSON + "problem p solves poisson { mesh = box(dim: 2, cells: 24); degree = 3; dirichlet u = [0, 0]; }"
    run = wf.parse(text).problem().run(device="cuda:0")
    np.testing.assert_allclose(run.vector, expected, atol=1e-8)
    assert run.to_dict()["backend"] == "cuda"
    try:
        import cupy
    except ImportError:
        print("passed without CuPy, which is not installed")
        return 0
    shared = cupy.from_dlpack(u)
    assert shared.data.ptr == interface["data"][0], "the tensor is a copy"
    assert cupy.asarray(u).data.ptr == interface["data"][0]
    places = cupy.asarray(u.places)
    np.testing.assert_allclose(cupy.asnumpy(shared[places]), expected, atol=1e-9)
    padding = cupy.ones(len(shared), dtype=bool)
    padding[places] = False
    assert not shared[padding].any()
    # Back: twice the solution, computed by CuPy, has twice the residual of the linear part.
    double = system.vector()
    double.take(2 * shared)
    np.testing.assert_allclose(double.to_numpy(), 2 * expected, atol=1e-9)
    # In place: CuPy writes the memory of the vector.
    shared *= 3
    cupy.cuda.get_current_stream().synchronize()
    np.testing.assert_allclose(u.to_numpy(), 3 * expected, atol=1e-9)
    r = system.residual(u)
    zeros = system.residual(system.vector())
    free = np.setdiff1d(np.arange(host.dofs), host.constrained_dofs)
    np.testing.assert_allclose(r.to_numpy()[free], -2 * zeros.to_numpy()[free], atol=1e-9)
    # The capsule keeps the memory.
    pointer = interface["data"][0]
    del u
    assert shared.data.ptr == pointer and float(cupy.abs(shared).max()) > 0
    print(f"passed: {len(shared)} places for {host.dofs} degrees of freedom, pointer {pointer:#x}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
