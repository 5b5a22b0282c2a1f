"""Launches of several stages, some images at a time, some of them a library's: what they say, in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.backend import Options
from engine.backends.engine_cuda import BACKEND
from engine.cuda import rung as rung_cuda
from kernels import arguments, nvrtc, registry
from kernels.errors import KernelError
from kernels.launch import Product, Stage, launch, spectral
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from tests.engine.backends import nets
from tests.kernels import cuda_cases, interpreted
from tests.kernels.cuda_device import Device

pytestmark = pytest.mark.slow

IN_TURNS = [
    rung for op in ("conv", "gemm") for rung in registry.rungs("cuda", op) if "SCRATCH_MIB" in rung.defines
]
ALEXNET = Conv(5, 96, 27, 27, 256, 5, 5, 27, 27, 1, 1, 2, 2, 2, 2, group=2, bias=True)
SQUARE = Conv(5, 64, 56, 56, 64, 3, 3, 56, 56, 1, 1, 1, 1, 1, 1, bias=True, activation="relu")


# --- what is described ------------------------------------------------------------------------------------


def test_cublas_is_told_of_every_product_as_it_lies() -> None:
    rung = registry.find("cuda", "gemm", "cublas")
    for case in cuda_cases.cases("gemm"):
        if case.params.dtype != "float32":  # which no rung gives to cuBLAS
            continue
        how = launch(case.params, rung)
        buffers = interpreted.buffers(case, 0)
        product, *finish = how.stages("gemm")
        assert isinstance(product, Product)
        interpreted.run(product, buffers)
        assert bool(finish) == bool(case.params.bias or case.params.activation), case.params
        actual = interpreted.finished_gemm(case.params, buffers["output"], case.inputs[2])
        assert not (problem := cuda_cases.differs(actual, case)), f"{case.params}: {problem}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("images", [1, 2, 99])
def test_patches_are_multiplied_group_by_group_and_finished(
    images: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spectral, "images_at_once", lambda p, *_: min(p.n, images))
    rung = registry.find("cuda", "conv", "im2col_cublas")
    for case in cuda_cases.cases("conv"):
        how = launch(case.params, rung)
        buffers = interpreted.buffers(case, how.workspace_nbytes or 0)
        for stage in how.stages("conv"):
            if isinstance(stage, Product):
                interpreted.run(stage, buffers)
            else:
                _kernel(case.params, stage, buffers)
        actual = buffers["output"].reshape(case.expected.shape)
        assert not (problem := cuda_cases.differs(actual, case)), f"{case.params}: {problem}"


def _kernel(whole: Conv, stage: Stage, buffers: dict[str, np.ndarray]) -> None:
    """What the kernels `conv` and `conv_finish` do for the images that this stage is told of."""
    assert stage.scalars is not None
    q = replace(whole, n=int(stage.scalars[0]))
    pixels, taps = q.n * q.out_h * q.out_w, q.c * q.kh * q.kw
    lead = spectral.row(pixels)
    if stage.function == "conv":
        assert stage.grid[0] * stage.block[0] >= pixels
        x = buffers["input 0"][stage.input_offset :][: q.n * q.c * q.h * q.w].reshape(q.n, q.c, q.h, q.w)
        room = ((0, 0), (0, 0), (q.pad_top, q.pad_bottom), (q.pad_left, q.pad_right))
        padded = np.pad(x, room)
        window = (slice(None), slice(None))
        patches = buffers["workspace"][: taps * lead].reshape(q.c, q.kh, q.kw, lead)
        for r in range(q.kh):
            for s in range(q.kw):
                rows = slice(r * q.dilation_h, r * q.dilation_h + (q.out_h - 1) * q.stride_h + 1, q.stride_h)
                columns = slice(
                    s * q.dilation_w, s * q.dilation_w + (q.out_w - 1) * q.stride_w + 1, q.stride_w
                )
                tap = padded[(*window, rows, columns)]
                patches[:, r, s, :pixels] = tap.transpose(1, 0, 2, 3).reshape(q.c, pixels)
        return
    sums = buffers["workspace"][taps * lead :][: q.m * lead].reshape(q.m, lead)[:, :pixels]
    y = sums.reshape(q.m, q.n, q.out_h, q.out_w).transpose(1, 0, 2, 3).astype(np.float64)
    if q.bias:
        y = y + buffers["input 2"][:, None, None]
    buffers["output"][stage.output_offset :][: y.size] = cuda_cases.activate(y, q.activation).reshape(-1)


@pytest.mark.parametrize(
    ("rung", "given"),
    [(rung, given) for rung in IN_TURNS for given in (ALEXNET, SQUARE) if not rung.refusal(given)],
    ids=lambda value: getattr(value, "name", None),
)
def test_images_take_turns_in_a_bounded_scratch_memory(rung: registry.Rung, given: Conv) -> None:
    together = launch(given, rung)
    assert (together.workspace_nbytes or 0) <= 256 << 20
    assert len(together.stages("conv")) == len(together.kernels("conv")) + ("cublas" in rung.name)
    alone = launch(given, replace(rung, defines={**rung.defines, "SCRATCH_MIB": 1}))
    assert (alone.workspace_nbytes or 0) < (together.workspace_nbytes or 0)
    kernels = [stage for stage in alone.stages("conv") if isinstance(stage, Stage)]
    each = len(alone.kernels("conv"))
    firsts, lasts = kernels[::each], kernels[each - 1 :: each]
    assert len(firsts) == len(lasts) > 1
    image, result = given.c * given.h * given.w, given.m * given.out_h * given.out_w
    seen = 0
    for first, finish in zip(firsts, lasts, strict=True):
        assert first.scalars is not None
        assert finish.scalars == first.scalars
        assert (first.input_offset, finish.output_offset) == (seen * image, seen * result)
        seen += int(first.scalars[0])
    assert seen == given.n
    told = alone.arguments([1000, 2000, 3000], 4000, 5000, rung, lasts[-1])
    assert [int(v) for v in told[:5]] == [1000, 2000, 3000, 4000 + 4 * lasts[-1].output_offset, 5000]
    assert arguments.unpacked("conv", told[5].tobytes()) == [int(v) for v in lasts[-1].scalars or ()]


def test_what_is_beyond_32_bits_is_refused_in_words() -> None:
    huge = Conv(1, 64, 9000, 9000, 64, 3, 3, 8998, 8998)
    for rung in IN_TURNS:
        with pytest.raises(KernelError, match="32 bits"):
            launch(huge, rung)


# --- transforms -------------------------------------------------------------------------------------------


def test_packed_weights_of_winograd_give_a_tile_of_the_convolution() -> None:
    rng = np.random.default_rng(1)
    weight, tile = rng.standard_normal((4, 3, 3, 3)), rng.standard_normal((6, 4, 4))
    packed = spectral.winograd_weights(weight.astype(np.float32), 2).reshape(4, 4, 2, 2, 3)
    b = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
    a = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])
    values = (b @ tile @ b.T).reshape(2, 3, 4, 4)
    y = np.einsum("ai,ijgmc,gcij,bj->gmab", a, packed, values, a).reshape(4, 2, 2)
    np.testing.assert_allclose(y, _correlated(weight, tile, 2), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kh", "kw", "length"), [(3, 3, 8), (5, 7, 16), (16, 1, 32)])
def test_packed_weights_of_fourier_give_a_tile_of_the_convolution(kh: int, kw: int, length: int) -> None:
    rng = np.random.default_rng(2)
    weight, tile = rng.standard_normal((4, 3, kh, kw)), rng.standard_normal((6, length, length))
    packed = spectral.fft_weights(weight.astype(np.float32), 2, length)
    spectrum = np.fft.rfft2(tile).reshape(2, 3, length, length // 2 + 1)
    sums = [
        np.einsum("ijgmc,gcij->gmij", packed[part], values)
        for part, values in enumerate((spectrum.real + spectrum.imag, spectrum.real, spectrum.imag))
    ]
    whole = (sums[0] - sums[2]) + 1j * (sums[0] + sums[1])
    y = np.fft.irfft2(whole.reshape(4, length, -1), (length, length)) * length**2
    expected = _correlated(weight, tile, 2)
    np.testing.assert_allclose(y[:, : length - kh + 1, : length - kw + 1], expected, rtol=1e-4, atol=1e-4)


def _correlated(weight: np.ndarray, tile: np.ndarray, group: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(tile, weight.shape[2:], (1, 2))
    parts = zip(np.split(weight, group), np.split(windows, group), strict=True)
    return np.concatenate([np.einsum("mcrs,cijrs->mij", w, x) for w, x in parts])


def test_a_transform_is_as_long_as_pays() -> None:
    rung = registry.find("cuda", "conv", "fft")
    assert launch(SQUARE, rung).defines["LENGTH"] in (8, 16)
    wide = replace(SQUARE, kh=16, kw=3, out_h=43)
    assert launch(wide, rung).defines["LENGTH"] == 32
    for q in (ALEXNET, SQUARE, wide):
        how = launch(q, rung)
        block = int(how.defines["TILES"]) * (int(how.defines["LENGTH"]) // 2 + 1)
        assert {s.block[0] for s in how.kernels("conv") if s.function != "conv_products"} == {block}


# --- what the ladder shows of them ------------------------------------------------------------------------


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
def test_compiled_facts_are_of_the_kernel_that_fills_the_device_least() -> None:
    rung = registry.find("cuda", "conv", "im2col_gemm")
    how = launch(SQUARE, rung)
    cubin = nvrtc.compile_rung(rung, "sm_90", how.defines)
    first, heavy = (nvrtc.resources(cubin, name) for name in ("conv", "conv_product"))
    assert first is not None
    assert heavy is not None
    assert heavy.registers > first.registers
    assert nvrtc.resources(cubin, "conv_nothing") is None
    kernel, facts = rung_cuda.compiled_facts(cubin, how, "conv", "90")
    assert kernel is not None
    assert kernel.function == "conv_product"
    assert facts["registers"] == heavy.registers
    shown = rung_cuda.launch_facts(how, "conv", kernel)
    assert shown["stages"] == "conv, conv_product"
    assert shown["kernel"] == "conv_product"


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
def test_nothing_is_claimed_of_a_library_s_kernels() -> None:
    rung = registry.find("cuda", "gemm", "cublas")
    plain = launch(Gemm(3, 5, 7), rung)
    cubin = nvrtc.compile_rung(rung, "sm_90", plain.defines)
    assert rung_cuda.compiled_facts(cubin, plain, "gemm", "90") == (None, {})
    assert rung_cuda.launch_facts(plain, "gemm", None) == {"stages": "cuBLAS"}


# --- on a GPU ---------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("rung", IN_TURNS, ids=lambda rung: rung.name)
def test_images_that_take_turns_agree_with_float64(device: Device, rung: registry.Rung) -> None:
    small = replace(rung, defines={**rung.defines, "SCRATCH_MIB": 1})
    turns = 0
    for case in cuda_cases.cases("conv"):
        if rung.refusal(case.params, device.capability):
            continue
        stages = launch(case.params, small).stages("conv")
        turns += len(stages) > len(launch(case.params, rung).stages("conv"))
        actual, spilled = device.run(small, case.params, case.inputs, case.expected.shape, case.dtype)
        problem = spilled or cuda_cases.differs(actual, case)
        assert not problem, f"{case.params}: {problem}"
    assert turns


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_model_on_yardsticks_is_captured_as_a_graph_and_agrees(device: Device) -> None:
    graph = nets.small_net()
    named = {"Conv": "im2col_cublas", "Gemm": "cublas"}
    rungs = {node.name: named[node.op_type] for node in graph.nodes if node.op_type in named}
    x = np.random.default_rng(4).standard_normal((5, 3, 12, 12)).astype(np.float32)
    answers = []
    for options in (Options(rungs=rungs), Options(rungs=rungs, cuda_graph=False), Options()):
        session = BACKEND.prepare(graph, 5, options=options)
        session.bind({"x": x})
        for _ in range(3):
            session.run()
        session.synchronize()
        answers.append(session.fetch()["y"])
        assert session.facts["cuda_graph"].startswith("yes" if options.cuda_graph else "no: not asked for")
        session.close()
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-4, atol=1e-6)
