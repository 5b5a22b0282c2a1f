"""How far off the sums of kernels are, on data that shows how they add.

    python -m tests.kernels.long_sums [--device cuda] [--op gemm] [--rung register_tiles] [--length 9216]

A line a rung and kind of data: the largest error of an output, relative to Σ|a·b|, at each length of the sum,
ONNX Runtime's beside it. Allowed is the larger of four times ONNX Runtime's, on the worst of the shapes that
have so many terms, and 1e-6; "!" marks what is beyond it. Of equal products each rounding has the same sign,
so that a sum of n terms that are added one after the other is off by up to n / 3 · 2⁻²⁴; uniform ones round
by chance; alternating ones cancel; heavy-tailed ones are of all magnitudes. Exit code 1 where a rung that is
held to it (`held`) is beyond.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnxruntime

from bench.measure.answers import one_node
from kernels import registry
from kernels.cpu import load
from kernels.ops import Params, sized
from kernels.ops.attention import Attention
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gemm import Gemm
from kernels.ops.normalize import Normalize
from kernels.ops.pool import Pool
from kernels.ops.reduce import Reduce
from kernels.ops.softmax import Softmax
from kernels.registry import Rung

KINDS = ("equal", "uniform", "alternating", "heavy-tailed")
LENGTHS = (16, 64, 130, 256, 500, 1024, 2304, 4608, 9216, 25_088, 100_000)
ENOUGH, TIMES = 1e-6, 4  # what no error needs to be below; how many times ONNX Runtime's it may be
DRAWS = 2
LEAST = 1e-30  # of what an error is relative to: what is nearly 0 has fewer digits
# Operators whose answer is a sum of products (or of terms): errors are relative to the sum of their
# magnitudes. Of the others they are relative to the answer.
SUMS = ("gemm", "conv", "conv3d", "conv_transpose", "conv_pool", "pool", "reduce")
OPS = (*SUMS, "normalize", "softmax", "attention")

Inputs = tuple[np.ndarray, ...]
Answer = Callable[[Rung, Params, Inputs], np.ndarray]


@dataclass(frozen=True)
class Case:
    """Inputs, their answer in float64, and what errors are relative to."""

    params: Params
    inputs: Inputs
    expected: np.ndarray
    scale: np.ndarray

    def error(self, got: np.ndarray) -> float:
        """The largest of an output; infinite where one is no number."""
        off = np.abs(got.astype(np.float64).reshape(self.expected.shape) - self.expected)
        worst = float((off / self.scale).max())
        return worst if math.isfinite(worst) else math.inf


def shapes(op: str, length: int) -> Iterator[Params]:
    """Each output of theirs is a sum of about so many terms."""
    side = math.isqrt(length)
    if op == "gemm":
        yield Gemm(1, 24, length, trans_b=True)
        yield Gemm(1, 24, length)
        yield Gemm(20, 36, length, trans_b=True)
        yield Gemm(20, 36, length)
        yield Gemm(5, 7, length, trans_a=True, batch=2, stride_a=5 * length)
    elif op == "conv":
        yield sized(Conv(1, length, 3, 4, 24, 1, 1, 0, 0))
        yield sized(Conv(1, max(2, length // 9), 5, 6, 20, 3, 3, 0, 0, pad_top=1, pad_left=1))
        yield sized(Conv(2, max(1, length // 16), 4, 4, 16, 4, 4, 0, 0))
        yield sized(Conv(1, 2 * max(2, length // 25), 9, 9, 8, 5, 5, 0, 0, 2, 2, 2, 2, 2, 2, group=2))
        yield sized(Conv(1, max(1, length // 121), 12, 12, 16, 11, 11, 0, 0))  # a window longer than a piece
        if length < 50:
            yield sized(Conv(1, 4, 9, 9, 4, 5, 5, 0, 0, group=4))
    elif op == "conv3d":
        yield Conv3d(1, max(1, length // 8), (3, 3, 4), 5, (2, 2, 2), (2, 2, 3))
    elif op == "conv_transpose":
        yield ConvTranspose(1, max(1, length // 4), 3, 4, 5, 2, 2, 4, 5)
    elif op == "conv_pool":
        conv = sized(Conv(1, max(1, length // 9), 8, 8, 16, 3, 3, 0, 0))
        yield ConvPool(conv, Pool("average", 1, 16, 6, 6, 2, 2, 3, 3, 2, 2))
    elif op == "pool":
        yield Pool("average", 2, 4, side, side, side, side, 1, 1)
        half = max(2, side // 2)
        yield sized(Pool("average", 1, 3, side + 3, side + 5, half, side, 0, 0))
    elif op == "reduce":
        for kind in ("sum", "mean", "l1", "sumsquare"):
            yield Reduce(kind, 3, length, 1)
            yield Reduce(kind, 2, length, 40)
            yield Reduce(kind, 1, length, 8)
    elif op == "normalize":
        yield Normalize(3, length, gives="mean")
        yield Normalize(3, length, gives="factor")
    elif op == "softmax":
        yield Softmax(3, length, 1)
        yield Softmax(2, length, 5)
        yield Softmax(1, length, 8)
    elif op == "attention":  # scores that hardly differ: the sums over the keys are what is looked at
        yield Attention(2, 1, 2, length, 4, 3, 1, scale=2.0**-20)


def drawn(kind: str, p: Params, random: np.random.Generator) -> Inputs:
    """Inputs of a kind of data, each map (row, where there are no weights) of another magnitude."""
    found = []
    for place, shape in enumerate(p.input_shapes):
        last = place == len(p.input_shapes) - 1  # weights, or the input where there are none
        values = np.ones(shape)
        if kind in ("uniform", "alternating"):
            values = random.uniform(0, 1, shape)
        elif kind == "heavy-tailed":
            values = random.standard_t(1.5, shape)
        if kind == "alternating" and last:
            values *= 1 - 2 * (np.indices(shape, sparse=False).sum(0) % 2)
        axis = 0
        if place and isinstance(p, Gemm | ConvTranspose):
            axis = 1
            if isinstance(p, Gemm):
                axis = len(shape) - (2 if p.trans_b else 1)
        wide = [1] * len(shape)
        wide[axis] = shape[axis]
        if kind == "equal":
            values = values * random.uniform(0.5, 2, wide)
        found.append(values.astype(np.float32))
    return tuple(found)


def case(p: Params, kind: str, seed: int) -> Case:
    inputs = drawn(kind, p, np.random.default_rng(seed))
    expected = one_node.answer(p, inputs).astype(np.float64)
    scale = np.abs(expected)
    if p.op in SUMS or (isinstance(p, Normalize) and p.gives == "mean"):
        scale = one_node.answer(p, tuple(map(np.abs, inputs))).astype(np.float64)
    if isinstance(p, Attention):
        scale = one_node.answer(p, (*inputs[:2], np.abs(inputs[2]))).astype(np.float64)
    return Case(p, inputs, expected, np.maximum(scale, LEAST))


def runtime(of: Case, device: str = "cpu") -> np.ndarray:
    """ONNX Runtime's answer, weights among the constants."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    provider = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}[device]
    chosen = [(provider, {"use_tf32": "0"})] if device == "cuda" else [provider]
    proto = one_node.graph(of.params, of.inputs).whole_proto().SerializeToString()
    session = onnxruntime.InferenceSession(proto, options, providers=chosen)
    feeds = {f"in{i}": of.inputs[i] for i in of.params.data_inputs}
    return session.run(None, feeds)[0]


def on_the_cpu(rung: Rung, p: Params, inputs: Inputs) -> np.ndarray:
    kernel = load(rung)
    known = [array if i in p.weight_inputs else None for i, array in enumerate(inputs)]
    packed = [b if a is None else a for a, b in zip(kernel.pack(p, known), inputs, strict=True)]
    output = np.full(p.output_shape, np.nan, np.float32)
    kernel.bind(p, packed, output, np.full(kernel.workspace(p) // 4, np.nan, np.float32))()
    return output


def takes(rung: Rung, p: Params, capability: tuple[int, int] | None = None) -> bool:
    if rung.refusal(p, capability) is not None:
        return False
    if rung.device == "cpu":
        return True
    from kernels import launch

    return launch.refusal(p, rung) is None


def held(rung: Rung) -> bool:
    """Whether it is held to what is allowed: an engine may take it, and it sums float32 directly."""
    return (rung.precision, rung.method) == ("fp32", "direct") and not (rung.yardstick or rung.user)


@dataclass(frozen=True)
class Found:
    """The errors of the rungs on one case. reference: ONNX Runtime's on that kind of data, the largest of all
    shapes whose sums are as long."""

    params: Params
    kind: str
    length: int
    reference: float
    errors: dict[str, float]

    @property
    def allowed(self) -> float:
        return max(ENOUGH, TIMES * self.reference)


def measured(
    rungs: Sequence[Rung],
    answer: Answer,
    lengths: Sequence[int],
    device: str = "cpu",
    capability: tuple[int, int] | None = None,
    kinds: Sequence[str] = KINDS,
    seed: int = 0,
    draws: int = DRAWS,
) -> Iterator[Found]:
    """Of the rungs of one operator."""
    for length in lengths:
        of_length = []
        for p in shapes(rungs[0].op, length):
            able = [rung for rung in rungs if takes(rung, p, capability)]
            for kind in kinds:
                reference, errors = 0.0, dict.fromkeys((rung.name for rung in able), 0.0)
                for draw in range(draws):
                    one = case(p, kind, seed + draw)
                    reference = max(reference, one.error(runtime(one, device)))
                    for rung in able:
                        errors[rung.name] = max(errors[rung.name], one.error(answer(rung, p, one.inputs)))
                of_length.append(Found(p, kind, length, reference, errors))
        worst = {kind: max(one.reference for one in of_length if one.kind == kind) for kind in kinds}
        for one in of_length:
            yield replace(one, reference=worst[one.kind])


def of_pieces(kind: str, length: int, piece: int = 256) -> float:
    """The error that is allowed whatever ONNX Runtime's is: of equal terms that of their sum in pieces
    (kernels/cuda/sums.cuh), of others ENOUGH."""
    return (piece + length / piece + 1) / 3 * 2.0**-24 if kind == "equal" else ENOUGH


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--op", action="append", choices=OPS)
    parser.add_argument("--rung", action="append")
    parser.add_argument("--length", action="append", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    answer: Answer = on_the_cpu
    capability = None
    if asked.device == "cuda":
        from tests.kernels.cuda_device import Device

        gpu = Device()
        capability = gpu.capability

        def answer(rung: Rung, p: Params, inputs: Inputs) -> np.ndarray:
            return gpu.run(rung, p, inputs, p.output_shape, np.dtype(np.float32))[0]

    beyond = 0
    for op in asked.op or OPS:
        ladder = [
            r
            for r in registry.rungs(asked.device, op)
            if not r.language and r.precision in ("fp32", "fp32-tc")
        ]
        ladder = [r for r in ladder if not asked.rung or r.name in asked.rung]
        if not ladder:
            continue
        found = list(
            measured(ladder, answer, asked.length or LENGTHS, asked.device, capability, seed=asked.seed)
        )
        beyond += _told(op, ladder, found)
    return 1 if beyond else 0


def _told(op: str, ladder: Sequence[Rung], found: Sequence[Found]) -> int:
    """Prints the worst of each rung, kind and length over the shapes; how many are beyond what is allowed."""
    beyond = 0
    lengths = sorted({each.length for each in found})
    print(f"\n{op:34}" + "".join(f"{n:>9}" for n in lengths))
    for kind in KINDS:
        for name in (None, *(rung.name for rung in ladder)):
            cells = []
            for n in lengths:
                of = [each for each in found if (each.kind, each.length) == (kind, n)]
                if name is None:
                    cells.append(f"{max(e.reference for e in of):8.1e} ")
                    continue
                of = [each for each in of if name in each.errors]
                if not of:
                    cells.append(f"{'':9}")
                    continue
                worst = max(of, key=lambda each: each.errors[name] / each.allowed)
                rung = next(rung for rung in ladder if rung.name == name)
                bad = worst.errors[name] > worst.allowed
                beyond += bad and held(rung)
                cells.append(f"{max(e.errors[name] for e in of):8.1e}" + ("!" if bad else " "))
            label = "ONNX Runtime" if name is None else name
            print(f"{kind:13} {label:20}" + "".join(cells), flush=True)
    return beyond


if __name__ == "__main__":
    sys.exit(main())
