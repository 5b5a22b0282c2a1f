"""Rungs in CuTe DSL by a stand-in for it on the host: their answers are right, and within their arrays."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import environment, launch, nvrtc, registry
from kernels.languages import compiling
from kernels.languages.known import languages
from kernels.languages.signature import signature
from kernels.ops import OPS, codes
from tests.kernels import cuda_cases

pytestmark = pytest.mark.slow

PACKAGES = Path(__file__).with_name("packages")
RUNGS = [rung for op in OPS for rung in registry.rungs("cuda", op) if rung.language == "cute-dsl"]
MOST_FLOPS, MOST_THREADS, CASES = 21_000, 1_100, 4


@pytest.fixture
def cute(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(PACKAGES))
    monkeypatch.setattr(environment, "_place", lambda *_: PACKAGES)
    yield importlib.import_module("cutlass.cute")
    for name in [name for name in sys.modules if name.partition(".")[0] == "cutlass"]:
        del sys.modules[name]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.op)
def test_it_compiles_where_its_compiler_is(
    rung: registry.Rung, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := languages()[rung.language].unavailable():
        pytest.skip(reason)
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    case = next(case for case in cuda_cases.cases(rung.op) if cuda_cases.takes(rung, case.params))
    how = launch.launch(case.params, rung)
    cubin = nvrtc.compile_rung(rung, arch, how.defines)
    assert compiling.settled(how, rung, cubin) == how
    used = nvrtc.resources(cubin, rung.op)
    assert used is not None
    assert 0 < used.registers < 256
    assert ".reqntid" not in cubin.with_suffix(".ptx").read_text(), "it fits blocks of any size"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.op)
def test_what_it_says_is_right_on_the_host(rung: registry.Rung, cute: Any) -> None:
    tried = 0
    for case in cuda_cases.cases(rung.op):
        if not cuda_cases.takes(rung, case.params) or case.params.flops > MOST_FLOPS:
            continue
        how = launch.launch(case.params, rung)
        if np.prod(how.grid) * how.block[0] > MOST_THREADS or tried == CASES:
            continue
        names: dict[str, Any] = codes() | dict(rung.defines) | dict(how.defines)
        exec(compile(rung.source, str(rung.path), "exec"), names)
        takes = signature(rung.path, rung.op, rung.source)
        y = np.full(case.expected.size, np.nan, np.float32)
        there = [np.zeros(0) if array is None else array.reshape(-1) for array in case.inputs]
        given = [int(array is not None) for array in case.inputs]
        scalars = [
            it if isinstance(it, np.float32) else int(it)
            for it in takes.values(rung.op, how.scalars, [*given, 1])
        ]
        arrays = [cute.Pointer(array) for array in (*there, y)]
        cute.run(names[rung.op], [*arrays, *scalars], how.grid, how.block[0])
        assert cuda_cases.differs(y.reshape(case.expected.shape), case) == "", case.params
        tried += 1
    assert tried == CASES
