"""The corpus of CUDA kernels that cheat before the checks of two other programs, on a GPU.

    python -m tests.bench.judge.other_harnesses [--only NAME,…] [--honest N] [--out FILE] [--markdown FILE]

Both checks are written anew from what these programs document, with CuPy in place of PyTorch and with one
reference for both, the rung that a cheat's file names: its answers on the GPU are what is expected.

KernelBench: five draws of inputs, each given once to kernel and reference, `allclose` with an absolute and a
relative tolerance of 1e-4 for fp32 (1e-2 in its first version); then the time of a hundred calls over the
same inputs between CUDA events, the L2 cache overwritten before each, three calls before and the first left
out. Nothing that a timed call leaves is looked at.

PyGPUBench: all draws are made before the first call, each with arguments of its own, and lie in memory that
nobody knows, less than 1 % of them wrong. Before each timed call, in an order drawn, they are copied to
where the kernel reads them, the L2 cache is overwritten, and the wrong ones are put right. What each timed
call left is compared. Its tolerance is the task's: 1e-4 here. Its check starts on the device while the kernel
ends; here it starts when the kernel has ended, which is kinder to a kernel that writes late.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bench.measure.answers import one_node, samples
from engine.cuda.rung import packed
from engine.cuda.runtime import Staging, capability_of, import_cupy, machine, translated
from engine.cuda.stages import kernel_calls
from engine.cuda.stream import Stream
from engine.machine import driver as cuda_driver
from kernels import launch, nvrtc, registry
from kernels.errors import KernelscopeError
from kernels.ops import Params
from kernels.registry import Rung
from tests.bench.judge import corpus
from tests.bench.judge.attack import LEAST
from tests.bench.judge.corpus import Cheat

TOLERANCES = {"KernelBench": 1e-4, "KernelBench, first version": 1e-2, "PyGPUBench": 1e-4}
TRIALS, WARM, TIMED = 5, 3, 100  # of KernelBench
CASES, REPEATED = 20, 10  # of PyGPUBench; calls before the timed ones
CANARIES = 128  # one value in so many is wrong
ON_DEVICE = 3  # cudaMemcpyKind
MOST_NBYTES = 256 << 20  # of all draws together; of larger problems there are fewer


class Device:
    """What the checks need of the GPU. cupy: or what stands in for it."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.pool = cupy.cuda.MemoryPool()
        self.stream = Stream(cupy, self.pool)
        self._staging = Staging(cupy, self.stream.on, 4 << 20)
        self.digits = "".join(map(str, capability_of(cupy)))

    def put(self, array: np.ndarray) -> Any:
        held = self.pool.malloc(max(array.nbytes, 16))
        self.write(held, array)
        return held

    def write(self, held: Any, array: np.ndarray) -> None:
        self._staging.upload(np.ascontiguousarray(array), int(held.ptr))
        self.stream.synchronize()

    def get(self, held: Any, params: Params) -> np.ndarray:
        found = np.empty(params.output_shape, params.out_dtype)
        self._staging.download(int(held.ptr), found)
        return found

    def copy(self, to: Any, of: Any, nbytes: int) -> None:
        self.cupy.cuda.runtime.memcpyAsync(int(to.ptr), int(of.ptr), nbytes, ON_DEVICE, self.stream.on.ptr)

    def output(self, params: Params) -> Any:
        """Memory for an output as it is found: nobody clears it."""
        return self.pool.malloc(max(16, params.outputs * np.dtype(params.out_dtype).itemsize))


class Kernel:
    """A rung that can be called with arrays on the device."""

    def __init__(self, device: Device, rung: Rung, params: Params) -> None:
        self._device, self.rung, self.params = device, rung, params
        self._how = launch.launch(params, rung)
        cubin = nvrtc.compile_rung(rung, f"sm_{device.digits}", self._how.defines)
        self._module = device.cupy.RawModule(path=str(cubin))
        self._workspace = device.pool.malloc(max(16, self._how.workspace_nbytes or 0))

    def laid_out(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """As its launch wants them."""
        return [packed(self._how.packed[i], a) if i in self._how.packed else a for i, a in enumerate(inputs)]

    def call(self, inputs: Sequence[Any], output: Any) -> Callable[[], None]:
        """What one call starts on the stream."""
        pointers = [int(held.ptr) for held in inputs]
        given = (pointers, int(output.ptr), int(self._workspace.ptr))
        stages = kernel_calls(self._device.cupy, self._module, self.rung, self._how, *given)

        def started() -> None:
            for stage in stages:
                stage()

        return lambda: self._device.stream.put(started)


class Verdict(msgspec.Struct, frozen=True):
    """Of one check on one kernel. wrong: why, "" where it is called right; ns: its time, then."""

    wrong: str
    ns: float = 0.0


class Compared(msgspec.Struct, frozen=True):
    """What the checks made of one kernel. cheat: "" for an honest one. full: the time of the full work."""

    name: str
    family: str
    expected: tuple[str, ...]
    said: dict[str, Verdict]
    full: dict[str, float] = {}

    def through(self, check: str) -> bool:
        """Whether it is let through, by the same rule as for our own judge."""
        said = self.said[check]
        less = self.full.get(check, 0.0) * LEAST > said.ns
        return not said.wrong and ("ok" not in self.expected or less)


# -------------------------------------------------------------------------------------------- the two checks


def drawn(params: Params, random_: np.random.Generator) -> list[np.ndarray]:
    """Inputs as these programs draw them: normal values; weights as ours are."""
    inputs = list(one_node.draw(params, random_))
    for place in params.data_inputs:
        if inputs[place].dtype.kind == "f":
            inputs[place] = random_.standard_normal(inputs[place].shape).astype(inputs[place].dtype)
    return inputs


def kernelbench(
    device: Device, kernel: Kernel, reference: Kernel, seed: int, timed: int = TIMED
) -> dict[str, Verdict]:
    params, random_ = kernel.params, np.random.default_rng(seed)
    checks = [name for name in TOLERANCES if name.startswith("KernelBench")]
    wrong = dict.fromkeys(checks, "")
    weights = drawn(params, random_)
    for trial in range(TRIALS):
        inputs = drawn(params, random_)
        inputs = [a if i in params.data_inputs else weights[i] for i, a in enumerate(inputs)]
        # The reference's answer stays where it is: else the kernel would find it in its own output.
        held_, expected = _answer(device, reference, inputs)
        _, got = _answer(device, kernel, inputs)
        del held_
        for name in checks:
            if not wrong[name] and not _close(got, expected, TOLERANCES[name]):
                wrong[name] = f"draw {trial + 1} of {TRIALS}"
    if all(wrong.values()):
        return {name: Verdict(wrong[name]) for name in checks}
    held = [device.put(array) for array in kernel.laid_out(inputs)]
    taken = []
    for number in range(WARM + 1 + timed):
        output = device.output(params)  # of each call: where the last one's lay, most likely
        ns = device.stream.elapsed_ns(kernel.call(held, output), cold=number >= WARM)
        device.stream.synchronize()
        if number > WARM:
            taken.append(ns)
    return {name: Verdict(wrong[name], statistics.fmean(taken)) for name in checks}


def pygpubench(device: Device, kernel: Kernel, reference: Kernel, seed: int, cases: int = CASES) -> Verdict:
    params, random_ = kernel.params, np.random.default_rng(seed)
    tolerance = TOLERANCES["PyGPUBench"]
    a_case = sum(array.nbytes for array in drawn(params, random_))
    cases = max(3, min(cases, MOST_NBYTES // max(1, a_case)))
    made = []
    for _ in range(cases + 1):
        inputs, output = drawn(params, random_), device.output(params)  # which is not where the answer lies
        _, expected = _answer(device, reference, inputs)
        right = kernel.laid_out(inputs)
        where = [device.put(np.full_like(array, -1)) for array in right]  # where the kernel will read
        made.append((right, where, output, expected))
    right, where, output, _ = made[0]
    for held, array in zip(where, right, strict=True):
        device.write(held, array)
    for _ in range(REPEATED):
        device.stream.elapsed_ns(kernel.call(where, output), cold=True)
    order = random.Random(seed).sample(range(1, cases + 1), cases)
    taken, wrong = [], 0
    for place in order:
        right, where, output, expected = made[place]
        hidden, mended = [], []
        for array in right:
            flat = array.reshape(-1)
            false = array.copy()
            at = random_.integers(0, CANARIES, 1)[0]
            false.reshape(-1)[at::CANARIES] = flat[::-1][at::CANARIES]
            hidden.append(device.put(false))
            mended.append(device.put(array))
        for held, of, array in zip(where, hidden, right, strict=True):
            device.copy(held, of, array.nbytes)
        call = kernel.call(where, output)

        def mend(where: Any = where, mended: Any = mended, right: Any = right) -> None:
            for held, of, array in zip(where, mended, right, strict=True):
                device.copy(held, of, array.nbytes)

        # Put right last, and then the cache is overwritten: here as one copy, there value by value.
        taken.append(device.stream.elapsed_ns(call, cold=True, before=mend))
        wrong += not _close(device.get(output, params), expected, tolerance)
    return Verdict(f"{wrong} of {cases} timed calls" if wrong else "", statistics.median(taken))


def _answer(device: Device, kernel: Kernel, inputs: Sequence[np.ndarray]) -> tuple[Any, np.ndarray]:
    """Where it lies, and what it is."""
    output = device.output(kernel.params)
    held = [device.put(array) for array in kernel.laid_out(inputs)]
    kernel.call(held, output)()
    device.stream.synchronize()
    return output, device.get(output, kernel.params)


def _close(got: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.allclose(got, expected, rtol=tolerance, atol=tolerance))


# ---------------------------------------------------------------------------------------------- the campaign


def checked(device: Device, rung: Rung, reference: Rung, params: Params, seed: int) -> dict[str, Verdict]:
    """What all checks say of a kernel: of one that raises, that."""
    try:
        with translated(rung.label):
            kernel, right = Kernel(device, rung, params), Kernel(device, reference, params)
            return kernelbench(device, kernel, right, seed) | {
                "PyGPUBench": pygpubench(device, kernel, right, seed)
            }
    except KernelscopeError as error:
        return dict.fromkeys(TOLERANCES, Verdict(str(error) or type(error).__name__))


def compared(device: Device, cheats: Sequence[Cheat], seed: int = 1) -> Iterator[Compared]:
    full: dict[tuple[Rung, Params], dict[str, float]] = {}
    for cheat in cheats:
        beside = registry.find("cuda", cheat.rung.op, cheat.beside, [corpus.FOLDER / "cuda"])
        key = (beside, cheat.params)
        if key not in full:
            said = checked(device, beside, beside, cheat.params, seed)
            full[key] = {name: verdict.ns for name, verdict in said.items()}
        said = checked(device, cheat.rung, beside, cheat.params, seed)
        yield Compared(cheat.name, cheat.family, cheat.expected, said, full[key])


def honest(device: Device, count: int, seed: int = 1) -> Iterator[Compared]:
    """Right rungs in fp32 on small shapes of their operators, drawn; the first rung is the reference."""
    drawn_, capability = random.Random(seed), tuple(map(int, (device.digits[:-1], device.digits[-1])))
    pairs = []
    for op in sorted({cheat.rung.op for cheat in corpus.planted("cuda")}):
        base = next(cheat.params for cheat in corpus.planted("cuda") if cheat.rung.op == op)
        first, *others = registry.rungs("cuda", op)
        for rung in (first, *others):
            if rung.precision == "fp32" and not (rung.yardstick or rung.language):
                shapes = (shape.params for shape in samples.small_shapes(rung, base))
                pairs += [(rung, first, p) for p in shapes if not rung.refusal(p, capability)]
    for rung, first, params in drawn_.sample(pairs, min(count, len(pairs))):
        yield Compared(rung.label, corpus.HONEST, ("ok",), checked(device, rung, first, params, seed))


def page(cheats: Sequence[Compared], honest_: Sequence[Compared], machine_: str, command: str) -> str:
    lines = [
        "# The corpus before other checks", "", f"`{command}`", "", f"- {machine_}",
        "- Both checks were written anew from the documentation of these programs, with CuPy in place of",
        "  PyTorch. They are not these programs: what those find or miss may differ.",
        "- Kernels of the kind `poison` look for marks of our own judge. They say little of others.", "",
        "| check | cheats | called wrong | right, with the time of the full work | let through | "
        "right kernels | called wrong |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for check in TOLERANCES:
        wrong = sum(bool(one.said[check].wrong) for one in cheats)
        let = sum(one.through(check) for one in cheats)
        accused = sum(bool(one.said[check].wrong) for one in honest_)
        numbers = (len(cheats), wrong, len(cheats) - wrong - let, let, len(honest_), accused)
        lines.append(f"| {check} | {' | '.join(map(str, numbers))} |")
    lines += [
        "",
        f"| cheat | kind | {' | '.join(TOLERANCES)} |",
        "| --- | --- |" + " --- |" * len(TOLERANCES),
    ]
    for one in cheats:
        lines.append(f"| {one.name} | {one.family} | {' | '.join(_cell(one, c) for c in TOLERANCES)} |")
    return "\n".join(lines) + "\n"


def _cell(one: Compared, check: str) -> str:
    said = one.said[check]
    if said.wrong:
        return "wrong"
    share = said.ns / one.full[check] if one.full.get(check) else 0.0
    told = f", {share:.0%} of the full work's time" if share else ""
    return f"**let through**{told}" if one.through(check) else f"right{told}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.judge.other_harnesses", description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME,…")
    parser.add_argument("--honest", type=int, default=100, metavar="N", help="right kernels beside them")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write what was found, as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    if reason := cuda_driver.unavailable():
        parser.error(f"there is no GPU here: {reason}")
    wanted = given.only.split(",") if given.only else []
    cheats = [cheat for cheat in corpus.planted("cuda") if not wanted or cheat.name in wanted]
    # What ends the context, or writes into other memory, comes last.
    cheats.sort(key=lambda cheat: cheat.alone)
    cupy = import_cupy()
    device = Device(cupy)
    said = list(honest(device, given.honest)), []
    for one in compared(device, cheats):
        said[1].append(one)
        print(one.name, *(f"{check}: {_cell(one, check)};" for check in TOLERANCES), flush=True)
    if given.out:
        given.out.write_bytes(msgspec.json.format(msgspec.json.encode([*said[0], *said[1]])))
    command = " ".join(("python -m tests.bench.judge.other_harnesses", *(arguments or sys.argv[1:])))
    told = page(said[1], said[0], machine(cupy, capability_of(cupy))["gpu"], command)
    print(told)
    if given.markdown:
        given.markdown.write_text(told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
