"""Inputs that are new before a pass on the device: as they are rebuilt, bit for bit."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cuda import renewing as cuda_renewing
from engine.cuda import rung as rung_cuda
from engine.cuda.renewing import CudaRenewing
from engine.cuda.runtime import import_cupy
from engine.rung_devices import prepare
from engine.stirring import NEW, SAME, Renewable
from kernels import nvrtc, registry
from kernels.ops.unary import Unary
from tests.bench.judge import on_the_host
from tests.engine.cuda.test_stirring import OnDevice
from tests.standin.device import Device
from tests.standin.modules import nvrtc as compiler
from tests.standin.modules.cupy import Cupy
from tests.standin.settings import Settings

HOSTED = pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host")
COMPILED = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = on_the_host.Hosted(tmp_path)
    monkeypatch.setattr(rung_cuda, "import_cupy", lambda: made)
    monkeypatch.setattr(nvrtc, "compile_rung", made.compiled)
    monkeypatch.setattr(nvrtc, "resources", lambda *_: None)
    return made


def check(cupy: Any) -> None:
    on = OnDevice(cupy)
    made = CudaRenewing(cupy, cupy.cuda.MemoryPool(), on.stirring)
    made.begin(on.staging)
    seen: list[np.ndarray] = []
    for new in (False, True, True, False, True):
        before = {name: on[name].copy() for name in made.drawn().stirring.inputs}
        on.put(lambda new=new: made.renew(new))
        wanted = made.drawn().inputs_of(made.number) if new else before
        for name, expected in wanted.items():
            assert on[name].tobytes() == expected.tobytes(), (name, made.number, new)
        made.number += 1
        seen.append(on["e"].copy())
    # Of two values, so that half of them are others by chance.
    differ = [(one != other).mean() for one, other in itertools.pairwise(seen)]
    assert [share > 0.3 for share in differ] == [True, True, False, True]


def test_what_the_stand_in_writes_is_what_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(source: registry.Rung, *_: object) -> Path:
        _, program = compiler.nvrtcCreateProgram(source.source.encode(), source.path.name.encode())
        defines = [f"-D{name}={value}".encode() for name, value in source.defines.items()]
        flags = [b"-arch=sm_90", f"-I{source.path.parent}".encode(), *defines]
        compiler.nvrtcCompileProgram(program, len(flags), flags)
        (tmp_path / source.name).write_bytes(program.cubin)
        return tmp_path / source.name

    monkeypatch.setattr(nvrtc, "compile_rung", compiled)
    check(Cupy(Device(Settings())))


@HOSTED
def test_what_the_kernels_own_text_writes_is_what_is_rebuilt(hosted: Any) -> None:
    check(hosted)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_what_the_device_writes_is_what_is_rebuilt() -> None:
    check(import_cupy())


@COMPILED
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_kernel_compiles_and_spills_nothing(arch: str) -> None:
    used = nvrtc.resources(nvrtc.compile_rung(cuda_renewing.source(), arch), "renew")
    assert used is not None
    assert used.spill_nbytes == used.stack_nbytes == 0


def answers() -> None:
    """A rung's passes over new inputs answer those, and what was written lies there again afterwards."""
    given = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    session = prepare(registry.find("cuda", "unary", 1), Unary("relu", 5000), [given])
    try:
        assert isinstance(session, Renewable)
        assert session.renewed() == ()
        for alike in (SAME, NEW, SAME, NEW):
            session.renew(4, alike)
            assert session.time_renewed(4) > 0
        ((given_new, left),) = session.renewed()
        assert session.renewed() == ()
        inputs, outputs = given_new["input 0"], left["output"]
        assert (inputs != given).mean() > 0.9
        np.testing.assert_array_equal(outputs, np.maximum(inputs, 0))
        assert session.strays() == ()
        session.run()
        session.synchronize()
        np.testing.assert_array_equal(session.output(), np.maximum(given, 0))
        session.renew(2, NEW)
        session.time_renewed(2)
        assert session.time_runs(5) > 0
        assert session.stirring is not None  # type: ignore[attr-defined]
        for witness in session.witnesses():  # type: ignore[attr-defined]
            now = session.stirring.inputs_of(witness.number)["input 0"]  # type: ignore[attr-defined]
            at, values = witness.outputs["output"]
            np.testing.assert_array_equal(values, np.maximum(now, 0)[at])
    finally:
        session.close()


@HOSTED
def test_a_rungs_passes_over_new_inputs_answer_those(hosted: Any) -> None:
    answers()


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_rungs_passes_over_new_inputs_answer_those_on_the_device() -> None:
    answers()
