"""What a CUDA kernel takes behind its pointers: laid out as the compiler has it, and, for one release, the
arguments of before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels import arguments, launch, nvrtc, registry
from kernels.errors import KernelError
from kernels.ops import OPS, Params
from kernels.ops.conv import Conv
from kernels.ops.unary import Unary
from kernels.registry import Rung
from tests.kernels.test_cuda_launch import EXAMPLES

pytestmark = pytest.mark.slow

compiled = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))

HEADER = """/*
op = "conv"
rung = 90
name = "mine"
idea = "Of a test."
launch = "one_thread_an_output"
*/
"""
POINTERS = "const float* x, const float* weight, const float* bias, float* y"
APART = ", ".join(f"int {member.name}" for member in arguments.members(Conv))
KERNEL = 'extern "C" __global__ void conv(' + POINTERS + ", %s) { y[0] = %s; }\n"


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str], Rung]:
    """A kernel of the user's for conv, of this text."""

    def made(text: str) -> Rung:
        (tmp_path / "90_mine.cu").write_text(HEADER + text)
        return registry.find("cuda", "conv", 90, [tmp_path])

    return made


def _asserted(record: type[Params], shift: int = 0) -> str:
    """A kernel that compiles where the struct lies as the host has it; shift: of the last member, which does
    not."""
    name, layout = arguments.struct_name(record), arguments.layout(record)
    places = {member: layout.fields[member][1] for member in layout.names or ()} if layout.fields else {}
    places[next(reversed(places))] += shift
    lines = [f'static_assert(__INTADDR__(&(({name}*)0)->{m}) == {at}, "{m}");' for m, at in places.items()]
    lines.append(f'static_assert(sizeof({name}) == {layout.itemsize}, "size");')
    lines.append(f'extern "C" __global__ void {record.op}(float* y, const {name} p) {{ *y = sizeof p; }}')
    return "\n".join(lines)


@compiled
@pytest.mark.sampled(8)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("op", OPS)
def test_a_struct_lies_as_the_compiler_has_it(op: str, arch: str) -> None:
    rung = registry.find("cuda", op, 1)
    nvrtc.compile_rung(replace(rung, source=_asserted(OPS[op])), arch)
    with pytest.raises(KernelError, match=r"static assertion failed|static_assert"):
        nvrtc.compile_rung(replace(rung, source=_asserted(OPS[op], shift=4)), arch)


@pytest.mark.parametrize("op", OPS)
def test_what_is_packed_is_what_the_record_says(op: str) -> None:
    scalars = EXAMPLES[op].scalars()
    whole = arguments.packed(op, scalars)
    assert whole.shape == (), "CuPy passes an array of one element by value"
    assert arguments.unpacked(op, whole.tobytes()) == [value.item() for value in scalars]
    for wrong in (scalars[:-1], (*scalars, np.int32(1)), (np.float64(scalars[0]), *scalars[1:])):
        with pytest.raises(TypeError, match="are not the members of"):
            arguments.packed(op, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["double a", "int", "int a, 2b", "int a[n]", "int a = 1"])
def test_a_struct_that_no_kernel_could_take_is_refused(text: str) -> None:
    record = type("Odd", (Conv,), {"struct": text})
    with pytest.raises(
        TypeError, match=r"Odd\.struct has .*; members are int, index_t or float, as C has them"
    ):
        arguments.members(record)


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        (KERNEL % ("const ConvParams p", "p.n"), False),
        (KERNEL % ("const __grid_constant__ ConvParams p", "p.n"), False),
        (KERNEL % ("ConvParams given", "given.n"), False),
        (KERNEL % (APART, "n"), True),
        (KERNEL % ("const int n", "n"), True),  # who reads only the first takes only the first
        (KERNEL % (APART.replace(", ", ",\n    "), "n"), True),
        (f"// conv(ConvParams p)\n{KERNEL % (APART, 'n')}", True),
        (f"#define SIZES {APART}\n{KERNEL % ('SIZES', 'n')}", True),
        (f"#define CONV extern \"C\" __global__ void conv({POINTERS}, \\\n {APART})\n"
         "CONV { *y = n; }", True),
        ("#define SIZES const ConvParams p\n" + KERNEL % ("SIZES", "p.n"), False),
        (f"#define K(name, ...) extern \"C\" __global__ void name(__VA_ARGS__)\n"
         f"K(conv, {POINTERS}, {APART}) {{ *y = n; }}", True),
        (f"#define K(name, ...) extern \"C\" __global__ void name(__VA_ARGS__)\n"
         f"K(conv, {POINTERS}, const ConvParams p) {{ *y = p.n; }}", False),
        (f"struct ConvParams {{ int a; }};\n{KERNEL % (APART, 'n')}", True),
    ],
)  # fmt: skip
def test_a_kernel_is_given_what_it_takes(text: str, apart: bool, mine: Callable[[str], Rung]) -> None:
    rung = mine(text)
    assert arguments.takes_one_by_one(rung) == apart
    given = launch.launch(EXAMPLES["conv"], rung).arguments([1, 2, 3], 4, 0, rung)
    assert len(given) == 4 + (len(EXAMPLES["conv"].scalars()) if apart else 1)
    (said,) = arguments.notes(rung) or ("",)
    assert ("write const ConvParams p in their place, and p.n for n" in said) == apart
    if nvrtc.unavailable() is None:
        nvrtc.compile_rung(rung, "sm_75")


def test_each_kernel_of_a_file_may_take_them_otherwise(mine: Callable[[str], Rung]) -> None:
    rung = mine(
        KERNEL % ("const ConvParams p", "p.n") + (KERNEL % (APART, "n")).replace("conv(", "conv_sum(")
    )
    assert not arguments.takes_one_by_one(rung)
    assert arguments.takes_one_by_one(rung, "conv_sum")


def test_our_rungs_take_the_struct() -> None:
    assert [r.label for op in OPS for r in registry.rungs("cuda", op) if arguments.notes(r)] == []


@compiled
def test_an_error_is_still_at_the_line_of_the_file(mine: Callable[[str], Rung]) -> None:
    rung = mine("\n" + KERNEL % ("const ConvParams p", "p.nonsense"))
    with pytest.raises(KernelError, match="nonsense") as caught:
        nvrtc.compile_rung(rung, "sm_80")
    assert str(caught.value).startswith(f"{rung.path}:{HEADER.count(chr(10)) + 2}: ")


@compiled
def test_what_is_compiled_follows_the_struct(monkeypatch: pytest.MonkeyPatch) -> None:
    rung = registry.find("cuda", "unary", 1)
    first = nvrtc.compile_rung(rung, "sm_80")
    text = arguments.declaration(Unary).replace("int kind", "int more, kind")
    monkeypatch.setattr(arguments, "declaration", lambda record: text)
    assert nvrtc.compile_rung(rung, "sm_80") != first


@compiled
@pytest.mark.parametrize(
    ("name", "header", "call"),
    [
        ("large_tiles", "taps.cuh", "y[0] = locate(1, 2, h, w, kh, kw, dilation_h, dilation_w).offset"),
        ("im2col_gemm", "patches.cuh",
         "write_patches(x, y, n, c, h, w, kh, kw, out_h, out_w, stride_h, stride_w, pad_top, pad_left, "
         "dilation_h, dilation_w)"),
        ("winograd_2x2_3x3", "spectral.cuh",
         "y[0] = place_of(1, out_h, out_w, kh, kw).top + tiles_of(n, out_h, out_w, kh, kw); "
         "multiply_places<16>(x, y, n, c, m, out_h, out_w, kh, kw, group)"),
    ],
)  # fmt: skip
def test_a_kernel_of_before_still_has_our_helpers(
    name: str, header: str, call: str, mine: Callable[[str], Rung]
) -> None:
    """What headers of ours took one by one: a user's copy of a rung of ours calls them so."""
    rung = mine(f'#include "{header}"\n' + (KERNEL % (APART, "")).replace("y[0] = ", call))
    assert arguments.takes_one_by_one(rung)
    nvrtc.compile_rung(rung, "sm_80", registry.find("cuda", "conv", name).defines)
