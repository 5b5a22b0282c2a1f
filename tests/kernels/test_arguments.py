"""What a CUDA kernel takes behind its pointers: one struct, laid out as the compiler has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels import arguments, launch, nvrtc, registry
from kernels.errors import KernelError
from kernels.ops import OPS, Params, members
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
APART = ", ".join(f"int {member.name}" for member in members(Conv))
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
        members(record)


@pytest.mark.parametrize(
    "text",
    [
        KERNEL % ("const ConvParams p", "p.n"),
        KERNEL % ("const __grid_constant__ ConvParams p", "p.n"),
        KERNEL % ("ConvParams given", "given.n"),
        "#define SIZES const ConvParams p\n" + KERNEL % ("SIZES", "p.n"),
        KERNEL.replace(", %s", "") % "x[0]",  # of one shape alone, which needs no sizes
        f"// conv({POINTERS}, {APART})\n{KERNEL % ('const ConvParams p', 'p.n')}",
        f"__device__ int conv_first({APART}) {{ return n; }}\n{KERNEL % ('const ConvParams p', 'p.n')}",
    ],
)
def test_a_kernel_is_given_its_struct(text: str, mine: Callable[[str], Rung]) -> None:
    rung = mine(text)
    given = launch.launch(EXAMPLES["conv"], rung).arguments([1, 2, 3], 4, 0, rung)
    assert given[4].dtype == arguments.layout(Conv)
    if nvrtc.unavailable() is None:
        nvrtc.compile_rung(rung, "sm_75")


@pytest.mark.parametrize(
    "text",
    [
        KERNEL % (APART, "n"),
        KERNEL % ("const int n", "n"),
        KERNEL % (APART.replace(", ", ",\n    "), "n"),
        f"// conv(ConvParams p)\n{KERNEL % (APART, 'n')}",
        f'#define CONV extern "C" __global__ void conv({POINTERS}, \\\n {APART})\nCONV {{ *y = n; }}',
        f"struct ConvParams {{ int a; }};\n{KERNEL % (APART, 'n')}",
        KERNEL % ("const ConvParams p", "p.n") + (KERNEL % (APART, "n")).replace("conv(", "conv_sum("),
        (KERNEL % (APART, "n")).replace("void conv", "void __launch_bounds__(256, 2) conv"),
    ],
)
def test_a_kernel_that_takes_its_sizes_one_by_one_is_told_what_to_write(
    text: str, mine: Callable[[str], Rung]
) -> None:
    told = r"90_mine\.cu: .* takes the sizes one by one; write const ConvParams p .*, and p\.n for n"
    with pytest.raises(KernelError, match=told):
        arguments.preamble(mine(text))


@compiled
def test_a_kernel_that_takes_its_sizes_one_by_one_is_not_compiled(mine: Callable[[str], Rung]) -> None:
    with pytest.raises(KernelError, match="write const ConvParams p behind the pointers in their place"):
        nvrtc.compile_rung(mine(KERNEL % (APART, "n")), "sm_75")


@compiled
@pytest.mark.parametrize(
    "text",
    [
        f"#define SIZES {APART}\n" + KERNEL % ("SIZES", "n"),
        "typedef int Size;\n" + KERNEL % ("Size n", "n"),
        "#define COUNT(n) int n\n" + KERNEL % ("COUNT(n)", "n"),
    ],
)
def test_a_kernel_whose_macro_hides_its_sizes_is_told_what_to_write(
    text: str, mine: Callable[[str], Rung]
) -> None:
    arguments.preamble(mine(text))  # its text alone does not show it
    with pytest.raises(KernelError, match="write const ConvParams p behind the pointers in their place"):
        nvrtc.compile_rung(mine(text), "sm_75")


def test_our_rungs_take_the_struct() -> None:
    for rung in (rung for op in OPS for rung in registry.rungs("cuda", op) if not rung.language):
        arguments.preamble(rung)


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


OF_C = "fminf((uint32_t)UINT_MAX, -INFINITY < FLT_MAX ? (float)M_PI : NAN)"


@compiled
@pytest.mark.parametrize(
    "before",
    ["", "typedef unsigned int uint32_t;\n#define INFINITY 1e30f\n", "using uint32_t = unsigned;\n"],
)
def test_names_that_other_compilers_know_from_headers_of_c_are_known(
    before: str, mine: Callable[[str], Rung]
) -> None:
    rung = mine(before + KERNEL % ("const ConvParams p", OF_C))
    nvrtc.compile_rung(rung, "sm_80")
    told = arguments.preamble(rung)
    assert ("#define INFINITY" in told) == ("INFINITY" not in before)
    assert ("uint32_t;" in told) == ("uint32_t" not in before)
    assert "int64_t" not in told


@compiled
def test_a_header_of_c_that_is_not_there_is_told_with_what_needs_none(mine: Callable[[str], Rung]) -> None:
    with pytest.raises(KernelError, match="INT_MAX and the like can be used without one"):
        nvrtc.compile_rung(mine("#include <limits.h>\n" + KERNEL % ("const ConvParams p", "p.n")), "sm_80")
