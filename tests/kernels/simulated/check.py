"""What the tests and the command do with a rung and with a planted mistake."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

from bench.questions import ladder_plan
from engine.cuda.simulated import ARCH, SimulatedRungSession, program_of, ptx_of
from kernels import launch, layouts, nvrtc, registry
from kernels.errors import UnsupportedError
from kernels.ops import OPS, Params
from kernels.ops.compare import Compare
from kernels.ops.concat import Concat
from kernels.ops.cumulate import Cumulate
from kernels.ops.gemm import Gemm
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.reduce import Reduce
from kernels.ops.scatter import Scatter
from kernels.ops.where import Where
from kernels.ptx import machine
from kernels.ptx.program import Device, Finding, Program, packed
from kernels.registry import Rung
from tests.kernels import cuda_cases, elementwise, lying
from tests.kernels.cuda_cases import Case
from tests.kernels.hosted import small
from tests.kernels.simulated import sampled
from tests.kernels.simulated.planted import Planted

RUNGS = [r for op in OPS for r in registry.rungs("cuda", op) if not (r.yardstick or r.language)]
MOST_OUTPUTS = 4_000
# A speed is the best of so many, each of passes that take so long: what else a machine does only slows it.
TRIES, AT_LEAST_S = 5, 0.1
FAST = 20e6  # warp instructions a second and core
MAPS = (16, 6, 28, 28)  # of the first convolution of LeNet-5 at batch 16
_ROW = elementwise.strides((6, 1, 1), MAPS), elementwise.strides(MAPS, MAPS)  # a number a map; each its own
# What a rung's speed is told of, the first that it takes: the second convolution of LeNet-5 at batch 16 and
# its first product at batch 64; of what has small cases of a few hundred instructions alone, its maps.
LAYERS: tuple[Params, ...] = (
    ladder_plan.conv_of((16, 6, 14, 14, 16, 5)),
    Gemm(m=64, n=120, k=400, trans_b=True),
    *(elementwise.binary("add", MAPS, MAPS, (6, 1, 1), dtype) for dtype in ("float32", "int32")),
    Compare("less", MAPS, *_ROW),
    MultiplyAdd(MAPS, _ROW[1], _ROW[0], _ROW[0]),
    Where(MAPS, _ROW[1], *_ROW),
    Concat(16, (4704, 4704)),
    Scatter("add", 100, 64, 100),
    Cumulate("sum", 16 * 6, 28, 28),
    Reduce("mean", 16 * 6, 28, 28, dtype="float64"),
)
_HEADER = '/*\nop = "unary"\nrung = 9\nname = "mine"\nidea = "A test."\nlaunch = "one_thread_an_output"\n*/\n'


@dataclass(frozen=True)
class Outcome:
    """wrong: what is wrong with the answer, "" if nothing. findings: words of what was found."""

    wrong: str
    findings: tuple[Finding, ...]
    instructions: int


def case_of(rung: Rung) -> Case:
    """Of the small cases that a rung takes the one with most to say."""
    known = small(rung.op, MOST_OUTPUTS)
    return max((c for c in known if cuda_cases.takes(rung, c.params)), key=lambda c: len(c.params.words))


def cases_of(rung: Rung) -> Iterator[Case]:
    yield from (c for c in small(rung.op) if cuda_cases.takes(rung, c.params))


def ran(rung: Rung, case: Case, seed: int = 0) -> Outcome:
    """Raises UnsupportedError where an instruction is missing."""
    session = SimulatedRungSession(rung, case.params, _given(case), seed)
    session.poison(0xFF)
    session.run()
    got = session.output().reshape(case.expected.shape)
    report = session.report
    return Outcome(
        cuda_cases.differs(got, case, rung.precision), tuple(report.findings), report.total.instructions
    )


def ran_in_layouts(rung: Rung, case: Case, seed: int = 0) -> Outcome:
    """As `ran`, of a rung that is compiled to read or write another layout; what fills a chunk up must be
    zero."""
    given = _given(case)
    if rung.read_layout != layouts.PLAIN:
        given[0] = lying.as_it_lies(
            rung.read_layout, np.asarray(given[0]).reshape(case.params.input_shapes[0])
        )
    session = SimulatedRungSession(rung, case.params, given, seed)
    session.poison(0xFF)
    session.run()
    report, shape = session.report, case.params.output_shape
    told = tuple(report.findings), report.total.instructions
    if rung.written_layout == layouts.PLAIN:
        got = session.output().reshape(case.expected.shape)
        return Outcome(cuda_cases.differs(got, case, rung.precision), *told)
    images, channels, height, width = layouts.as_images(shape)
    held = session.output_bytes.view(lying.of_case(rung.written_layout, case.dtype))
    held = held.reshape(images, height, width, -1)
    got = lying.brought_back(held, shape).reshape(case.expected.shape)
    filled = "what fills a chunk up is not zero" if held[..., channels:].any() else ""
    return Outcome(filled or cuda_cases.differs(got, case, rung.precision), *told)


@dataclass(frozen=True)
class Speed:
    """rate: warp instructions a second of the processor's time, of passes that take AT_LEAST_S together, the
    best of TRIES; compiling is not counted. running: the same of the machine alone, without what Python does
    before and after each launch. instructions: of a pass. shares: where its time goes (sampled.shares), of a
    rung that is slow. on: one of LAYERS where the rung takes it, else its largest small case."""

    label: str
    on: str
    rate: float
    running: float
    instructions: int
    shares: dict[str, float]

    @property
    def reason(self) -> str:
        """Why a rung is slower than FAST, as it was measured."""
        if self.rate >= FAST:
            return ""
        if self.running >= FAST:
            return (
                f"{1 - self.rate / self.running:.0%} of the time prepares launches, "
                f"for {self.instructions:,} warp instructions a pass"
            )
        return ", ".join(f"{share:.0%} {part}" for part, share in self.shares.items() if share >= 0.1)


def speed(rung: Rung) -> Speed:
    params = next((p for p in LAYERS if p.op == rung.op and cuda_cases.takes(rung, p)), None)
    if params is None:
        case = max(cases_of(rung), key=lambda case: (case.params.flops, case.expected.size))
        params, given = case.params, _given(case)
    else:
        given = list(elementwise.inputs(params))
    session = SimulatedRungSession(rung, params, given)
    session.run()
    done, passes = session.report.total.instructions, 0

    def one_pass() -> None:
        session.poison(0xFF)
        session.run()

    inside, ran = 0.0, machine.run

    def timed(*given: int) -> None:
        nonlocal inside
        before = time.process_time()
        ran(*given)
        inside += time.process_time() - before

    rate = running = 0.0
    with mock.patch.object(machine, "run", timed):
        for _ in range(TRIES):
            started, inside, passes = time.process_time(), 0.0, 0
            while (taken := time.process_time() - started) < AT_LEAST_S or not passes:
                one_pass()
                passes += 1
            rate, running = max(rate, passes * done / taken), max(running, passes * done / inside)
    slow = sampled.ABLE and running < FAST

    def again() -> None:
        for _ in range(passes):
            one_pass()

    shares = sampled.shares(again) if slow else {}
    return Speed(rung.label, params.words, rate, running, done, shares)


@functools.cache
def missing_of(rung: Rung) -> tuple[str, ...]:
    """The instructions of a rung that are missing."""
    how = launch.launch(case_of(rung).params, rung)
    try:
        program_of(rung, how)
    except UnsupportedError:
        return tuple(Program(ptx_of(rung, how)).lacking())
    return ()


def _given(case: Case) -> list[np.ndarray]:
    return [array for array in case.inputs if array is not None]


def program(folder: Path, text: str, arch: str = ARCH) -> Program:
    """A kernel as NVRTC compiles it. The lines of its PTX are those of `text`."""
    return Program(nvrtc.ptx(own_rung(folder, text), arch))


def own_rung(folder: Path, text: str, name: str = "mine") -> Rung:
    """A rung of a text whose function has this name, in an empty folder. Lines are those of `text`."""
    path = folder / f"09_{name}.cu"
    path.write_text(_HEADER.replace("mine", name) + f"#line 1\n{text}")
    return registry.find("cuda", "unary", 9, [folder])


def findings(folder: Path, planted: Planted, text: str, seed: int = 0) -> list[Finding]:
    made = Device(program(folder, text, planted.arch))
    count = planted.threads * planted.blocks
    x = np.arange(count, dtype=np.float32) % 17 + 1
    given = made.buffer("x", x, 4)
    y = made.buffer("y", np.zeros(count, np.float32), 4, writable=True, written=False)
    z = made.buffer("z", np.zeros(count, np.float32), 4, writable=True, written=True)
    arguments = packed([np.uint64(b.address) for b in (given, y, z)] + [np.int32(count)])
    made.launch("mine", (planted.blocks,), (planted.threads,), arguments, seed=seed, seconds=2)
    return made.report.findings


def told(planted: Planted, found: list[Finding]) -> bool:
    """Whether one of the findings is the mistake, at its line; where it is a race, with the other line."""
    here, there = planted.lines("//!"), planted.lines("//?")
    both = planted.lines("//! //?")
    race = planted.kind == "race"
    for finding in found:
        if finding.kind != planted.kind or finding.place is None:
            continue
        lines = {finding.place.line} | ({finding.other.line} if race and finding.other else set())
        # Which of two accesses comes first, the order of the warps decides.
        if lines <= here | both | (there if race else set()):
            return True
    return False
