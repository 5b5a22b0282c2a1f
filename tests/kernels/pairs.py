"""Rungs of this tree beside the same ones of another, in turns: whether a change made them slower.

    git archive COMMIT | tar -x -C before
    python -m tests.kernels.pairs before [--device cuda] [--op gemm] [--rung large_tiles] [--seconds 60]

Each tree has a process of its own; they take turns. A line a rung and shape: the medians of both, the median
of the ratios of the turns (after over before), and the ratio of the least times. What only one tree takes is
left out. Exit code 1 where a process fails, or nothing is left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from kernels import registry
from kernels.cpu import load
from kernels.ops import Params, sized
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

A_TURN = 0.01  # seconds of a rung


def _conv(n: int, c: int, h: int, m: int, k: int, stride: int = 1) -> Conv:
    pads = dict.fromkeys(("pad_top", "pad_left", "pad_bottom", "pad_right"), k // 2)
    return sized(Conv(n, c, h, h, m, k, k, 0, 0, stride, stride, **pads, bias=True, activation="relu"))


SHAPES: dict[str, tuple[Params, ...]] = {
    "gemm": (
        Gemm(1, 4096, 9216, trans_b=True, bias=True),
        Gemm(16, 4096, 9216, trans_b=True, bias=True),
        Gemm(64, 1024, 1024, trans_b=True),
        Gemm(256, 768, 3072),
        Gemm(1024, 1024, 1024),
        Gemm(32, 84, 120, trans_b=True, bias=True),
    ),
    "conv": (
        _conv(1, 3, 224, 64, 7, 2),
        _conv(16, 64, 56, 64, 3),
        _conv(16, 256, 14, 256, 3),
        _conv(1, 256, 13, 384, 3),
        _conv(16, 256, 14, 1024, 1),
        _conv(64, 6, 14, 16, 5),
    ),
    "conv3d": (Conv3d(1, 16, (16, 28, 28), 32, (3, 3, 3), (14, 26, 26)),),
    "conv_transpose": (ConvTranspose(1, 64, 28, 28, 32, 2, 2, 56, 56, 2, 2),),
    "conv_pool": (ConvPool(_conv(64, 6, 14, 16, 5), Pool("max", 64, 16, 14, 14, 2, 2, 7, 7, 2, 2)),),
    "pool": (Pool("average", 16, 512, 7, 7, 7, 7, 1, 1), Pool("average", 16, 64, 56, 56, 2, 2, 28, 28, 2, 2)),
    "reduce": (Reduce("sum", 256, 4096, 1), Reduce("mean", 16, 1024, 64)),
    "normalize": (Normalize(1024, 768),),
    "softmax": (Softmax(1024, 1000, 1), Softmax(64, 256, 32)),
}
with contextlib.suppress(ImportError):  # an older tree has none
    from kernels.ops.attention import Attention

    SHAPES["attention"] = (
        Attention(1, 12, 128, 128, 64, 64, 12, scale=0.125),
        Attention(8, 6, 197, 197, 64, 64, 6, scale=0.125),
    )


def _on_the_cpu(rung: Rung, p: Params, inputs: Sequence[np.ndarray]) -> Callable[[], object]:
    kernel = load(rung)
    packed = kernel.pack(p, [a if i in p.weight_inputs else None for i, a in enumerate(inputs)])
    held = [a if b is None else b for a, b in zip(inputs, packed, strict=True)]
    output = np.zeros(p.output_shape, np.float32)
    call: Callable[[], object] = kernel.bind(p, held, output, np.zeros(kernel.workspace(p) // 4, np.float32))
    return call


class _Gpu:
    """Bound launches on the current GPU."""

    def __init__(self) -> None:
        from engine.cuda.runtime import import_cupy
        from engine.cuda.stages import CublasLibrary

        self.cupy = import_cupy()
        self.library = CublasLibrary(self.cupy)
        digits = str(self.cupy.cuda.Device().compute_capability)
        self.capability, self.arch = (int(digits[:-1]), int(digits[-1])), f"sm_{digits}"

    def bound(self, rung: Rung, p: Params, inputs: Sequence[np.ndarray]) -> Callable[[], object]:
        from engine.cuda.stages import kernel_calls
        from kernels import launch, nvrtc

        how = launch.launch(p, rung)
        module = self.cupy.RawModule(path=str(nvrtc.compile_rung(rung, self.arch, how.defines)))
        packed = [how.packed[i](a) if i in how.packed else a for i, a in enumerate(inputs)]
        held = [self.cupy.asarray(a.reshape(-1)) for a in packed]
        output = self.cupy.asarray(np.zeros(p.output_shape, np.float32))
        scratch = self.cupy.asarray(np.zeros(max(16, how.workspace_nbytes or 0), np.uint8))
        pointers = [a.data.ptr for a in held]
        calls = kernel_calls(
            self.cupy, module, rung, how, pointers, output.data.ptr, scratch.data.ptr, self.library
        )

        def run(_held: object = (held, output, scratch)) -> None:
            for call in calls:
                call()

        return run

    def synchronize(self) -> None:
        self.cupy.cuda.Device().synchronize()


def serve(device: str, ops: Sequence[str], names: Sequence[str]) -> None:
    """A line of JSON for each line that is read: seconds a pass, by rung and shape."""
    gpu = _Gpu() if device == "cuda" else None
    wait = gpu.synchronize if gpu else lambda: None
    calls: list[tuple[str, Callable[[], object], int]] = []
    for op in ops:
        for p in SHAPES.get(op, ()):
            random_ = np.random.default_rng(0)
            inputs = [random_.standard_normal(shape).astype(np.float32) for shape in p.input_shapes]
            for rung in registry.rungs(device, op):
                if (
                    rung.language
                    or rung.yardstick
                    or rung.precision != "fp32"
                    or (names and rung.name not in names)
                ):
                    continue
                if rung.refusal(p, gpu.capability if gpu else None):
                    continue
                try:
                    call = gpu.bound(rung, p, inputs) if gpu else _on_the_cpu(rung, p, inputs)
                    call()
                    wait()
                except Exception as error:  # refused by its launch shape, or does not fit the device
                    print(f"{rung.label} on {p.words}: {error}", file=sys.stderr)
                    continue
                began = time.perf_counter()
                call()
                wait()
                once = time.perf_counter() - began
                calls.append((f"{rung.label} on {p.words}", call, max(1, int(A_TURN / max(once, 1e-7)))))
    for _ in sys.stdin:
        found = {}
        for name, call, times in calls:
            began = time.perf_counter()
            for _ in range(times):
                call()
            wait()
            found[name] = (time.perf_counter() - began) / times
        print(json.dumps(found), flush=True)


class _Side:
    """A tree's rungs, in a process of its own. What it says on stderr is seen."""

    def __init__(self, tree: str, arguments: Sequence[str]) -> None:
        # The tree's own modules first, then those that this process was told of.
        paths = [tree, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._tree = tree
        if not os.path.isdir(os.path.join(tree, "kernels")):
            sys.exit(f"{tree} has no kernels; another tree has: git archive COMMIT | tar -x -C {tree}")
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def turn(self) -> dict[str, float]:
        """Seconds a pass, by rung and shape. Raises RuntimeError where the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = ""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"the process that times the rungs of {self._tree} ended with exit code "
                f"{self._process.wait()}; why, it says above"
            )
        found: dict[str, float] = json.loads(line)
        return found

    def end(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--op", action="append", choices=tuple(SHAPES))
    parser.add_argument("--rung", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.device, asked.op or tuple(SHAPES), asked.rung)
        return 0
    arguments = [__file__, asked.before, "--serve", "--device", asked.device]
    for flag, values in (("--op", asked.op or []), ("--rung", asked.rung)):
        arguments += [word for value in values for word in (flag, value)]
    sides = [_Side(tree, arguments) for tree in (os.path.abspath(asked.before), os.getcwd())]
    turns: list[list[dict[str, float]]] = [[], []]
    end = 0.0
    try:
        while not turns[0] or time.monotonic() < end:
            for i in random.sample((0, 1), 2):
                turns[i].append(sides[i].turn())
            end = end or time.monotonic() + asked.seconds
    except RuntimeError as error:
        print(f"pairs: {error}", file=sys.stderr)
        return 1
    finally:
        for side in sides:
            side.end()
    both = [name for name in turns[0][0] if name in turns[1][0]]
    if not both:
        print("pairs: no rung and shape was timed by both trees; why, they say above", file=sys.stderr)
        return 1
    for name in both:
        before, after = ([turn[name] for turn in side] for side in turns)
        ratio = statistics.median(b / a for a, b in zip(before, after, strict=True))
        least = min(after) / min(before)
        print(f"{statistics.median(before) * 1e6:10.1f} µs {statistics.median(after) * 1e6:10.1f} µs"
              f"  {ratio:6.3f}  {least:6.3f}  {name}", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
