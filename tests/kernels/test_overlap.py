"""Rungs that may begin before the kernel in front of them has ended."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from engine.cuda.replays import overlap as cuda_overlap
from kernels import arguments, includes, registry
from kernels.ops import OPS

RUNGS = [rung for op in OPS for rung in registry.rungs("cuda", op) if rung.overlaps]


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.label.replace(" ", "-"))
def test_every_kernel_waits_before_it_reads_an_activation(rung: registry.Rung) -> None:
    # Weights may be read before: nothing that runs writes them.
    texts = (rung.source, *(header.text for header in includes.headers(rung)))
    bodies = [body for text in texts for body in re.split(r'extern "C" __global__', text)[1:]]
    assert bodies
    for body in bodies:
        signature, inside = body.split("{", 1)
        data = re.findall(r"float\* __restrict__ (\w+)", signature)
        waiting = next((name for name in _waiting(rung) if f"{name}({data[0]}, " in inside), None)
        if waiting is not None:  # it waits for the kernel, which does nothing before
            assert not re.search(r"\w", inside.partition(f"{waiting}(")[0])
            inside = _waiting(rung)[waiting]
        inside = re.sub(r"//[^\n]*", "", inside)
        before, waited, _ = inside.partition("wait_for_previous()")
        assert waited, "a kernel of a rung that overlaps must wait"
        names = [name for name in (data[0], "y", "workspace", "finish") if name in {*data, "finish"}]
        for name in names:
            # Where it lies may be worked out before: what points to it must not be touched either.
            made = re.compile(rf"^ *const float4?\* (\w+) = .*(?<!\.)\b{name}\b.*;$", re.MULTILINE)
            names += made.findall(before)
            before = made.sub("", before)
            assert not re.search(rf"(?<!\.)\b{name}\b", before), f"{name} is touched before the wait"


def _waiting(rung: registry.Rung) -> dict[str, str]:
    """Functions of the rung's headers that wait, with their bodies, which call their first input x."""
    found: dict[str, str] = {}
    for header in includes.headers(rung):
        for function in re.split(r"^(?:template|__device__) ", header.text, flags=re.MULTILINE)[1:]:
            named = re.search(r"\b(\w+)\(const float\* __restrict__ x,.*?\{(.*)", function, re.DOTALL)
            if named and "wait_for_previous()" in named[2]:
                found[named[1]] = named[2]
    return found


def test_arguments_lie_in_memory_as_the_driver_takes_them() -> None:
    struct = arguments.packed("unary", (np.int64(2**33 + 1), np.int32(3), np.float32(0.5), np.float32(-1)))
    given = (np.uint64(2**40 + 5), np.int32(-7), np.float32(0.5), np.int64(2**33))
    held = cuda_overlap._Arguments((*given, struct))
    pointers = ctypes.cast(held.address, ctypes.POINTER(ctypes.c_void_p))
    kinds = (ctypes.c_uint64, ctypes.c_int32, ctypes.c_float, ctypes.c_int64)
    read = [
        ctypes.cast(pointers[i], ctypes.POINTER(kind)).contents.value  # type: ignore[attr-defined]
        for i, kind in enumerate(kinds)
    ]
    assert read == [value.item() for value in given]
    assert pointers[4] is not None
    assert ctypes.string_at(pointers[4], struct.nbytes) == struct.tobytes()
