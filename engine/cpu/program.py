"""Compiled steps that follow each other become one call into compiled code (`Program`).

A program is a table of phases, done one after the other. Usually a phase is several steps over blocks of
images, where each step needs only its own images of the step before; else it is one step, divided into parts.
Tensors that only the steps of one block read lie in memory of the thread, and stay in its cache. Blocks and
parts are tasks: each free thread takes the next task.

The other threads wait for work inside compiled code: first they spin for a moment (SPIN), because a pass over
a small net is over before the system has woken a thread. Then they sleep there, without Python's lock, which
they would need one after the other when they wake. A pass wakes as many threads as it needs: the caller wakes
two, each of these two more, and so on, because waking one takes as long as many a step. Nobody waits for a
thread that has taken no task: on a busy machine the caller does everything.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.graph.memory import ALIGNMENT, lives, place
from engine.graph.plan import ArenaSlot
from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled, inlined

# A phase takes one more thread for each of these that it is long, by a rough guess: what a thread costs.
WORTH_SHARING_S = 8e-6
FLOPS_A_SECOND, BYTES_A_SECOND = 120e9, 40e9
TASKS_A_THREAD = 4  # of a step that is divided, so that a thread that is held up leaves work to the others
BLOCK = 8  # images that go through a run of steps together, where that much stays in a core's cache
CACHE_NBYTES = 512 << 10
SPIN = 200_000  # cycles
PATIENCE = 2_000  # looks at what others do before the core is given to whoever wants it
UNWOKEN_S = 1e-3  # where the system has no sleep that compiled code knows: then a thread looks so often

# Words of a program: how many phases and threads; then the phases, then the steps.
HEAD, PHASE, STEP = 8, 24, 16
LOCAL, LOCAL_STRIDE = 1, 2  # of the head: where tensors of one block lie, and bytes between two threads'
NEXT, DONE, TASKS, UNITS, EACH, FIRST, STEPS = 0, 8, 16, 17, 18, 19, 20  # of a phase; counters lie apart
# Of a step: its function; its arguments, and the bytes between two threads' (0: all have the same); scratch,
# and the bytes between two threads'; of a tensor of one block the argument that is its address (0: none is),
# where it lies, and bytes an image.
FUNCTION, ARGUMENTS, OWN, SCRATCH, STRIDE = 0, 1, 2, 3, 4
READ, READ_AT, READ_EACH, WRITTEN, WRITTEN_AT, WRITTEN_EACH = 5, 6, 7, 8, 9, 10
# Words of a team: a gate, the program behind it, and of each thread whether it sleeps.
GATE, BEHIND, BEDS, BED = 0, 8, 16, 8
# The gate: threads inside, whether it is open, how many threads may come in, number of the pass.
OPEN, MOST, PASS = 1 << 16, 1 << 17, 1 << 29
AWAKE, ASLEEP = 0, 1


@inlined
def wait(spins):
    """Wait a moment. After many moments the core is left to others, one of which may be the thread that is
    waited for."""
    if spins > PATIENCE:
        simd.give_way()
    else:
        simd.pause()
    return spins + 1


@inlined
def wait_until(counter, count):
    spins = 0
    while simd.load(counter) < count:
        spins = wait(spins)


@inlined
def take_part(program, thread):
    """Do tasks of all phases, until none are left."""
    phases = program[0]
    rows = simd.shifted(program, HEAD + phases * PHASE)
    local = program[LOCAL] + thread * program[LOCAL_STRIDE]
    for number in range(phases):
        phase = simd.shifted(program, HEAD + number * PHASE)
        tasks, units, each = phase[TASKS], phase[UNITS], phase[EACH]
        first, last = phase[FIRST], phase[FIRST] + phase[STEPS]
        task = simd.add(simd.shifted(phase, NEXT), 1)
        while task < tasks:
            low, high = task * each, min(units, (task + 1) * each)
            for s in range(first, last):
                row = simd.shifted(rows, s * STEP)
                arguments = simd.integers(row[ARGUMENTS] + thread * row[OWN])
                if row[READ] > 0:
                    arguments[row[READ]] = local + row[READ_AT] - low * row[READ_EACH]
                if row[WRITTEN] > 0:
                    arguments[row[WRITTEN]] = local + row[WRITTEN_AT] - low * row[WRITTEN_EACH]
                scratch = simd.floats(row[SCRATCH] + thread * row[STRIDE])
                simd.invoke(row[FUNCTION], arguments, low, high, scratch)
            simd.add(simd.shifted(phase, DONE), 1)
            task = simd.add(simd.shifted(phase, NEXT), 1)
        wait_until(simd.shifted(phase, DONE), tasks)


@inlined
def welcome(gate, number, seen):
    """Whether a thread of this number may join the pass at this gate. seen: the last pass that it joined."""
    most = gate // MOST % (PASS // MOST)
    return gate // OPEN % 2 == 1 and gate // PASS != seen and number < most


@inlined
def wake_two(team, number, most):
    """Wake the two threads that this one is responsible for, if they are among the first `most` and
    asleep."""
    for other in range(2 * number + 1, min(2 * number + 3, most)):
        bed = simd.shifted(team, BEDS + BED * other)
        if simd.swap(bed, ASLEEP, AWAKE):
            simd.rouse(bed)


@compiled
def run(team, low, high, scratch):
    """Run the program at address `low` with the first `high` threads of the team."""
    program = simd.integers(low)
    for number in range(program[0]):
        phase = simd.shifted(program, HEAD + number * PHASE)
        phase[NEXT] = 0
        phase[DONE] = 0
    if high < 2:
        take_part(program, 0)
        return
    gate = simd.shifted(team, GATE)
    team[BEHIND] = low
    simd.store(gate, (simd.load(gate) // PASS + 1) * PASS + high * MOST + OPEN)
    wake_two(team, 0, high)
    take_part(program, 0)
    simd.add(gate, -OPEN)
    spins = 0
    while simd.load(gate) % OPEN > 0:
        spins = wait(spins)


@compiled
def serve(team, low, high, scratch):
    """Thread number `low` of a team: joins passes, and sleeps after `high` cycles without work. Returns where
    the system has no such sleep."""
    gate, bed = simd.shifted(team, GATE), simd.shifted(team, BEDS + BED * low)
    seen = 0
    since = simd.cycles()
    while True:
        held = simd.load(gate)
        if welcome(held, low, seen):
            if simd.swap(gate, held, held + 1):
                seen = held // PASS
                wake_two(team, low, held // MOST % (PASS // MOST))
                take_part(simd.integers(team[BEHIND]), low)
                simd.add(gate, -1)
                since = simd.cycles()
        elif simd.cycles() - since < high:
            simd.pause()
        else:
            # Who opens the gate next sees that it sleeps, or it sees here that the gate was opened.
            simd.store(bed, ASLEEP)
            slept = 1
            if not welcome(simd.add(gate, 0), low, seen):
                slept = simd.doze(bed, ASLEEP)
            simd.store(bed, AWAKE)
            if not slept:
                return
            since = simd.cycles()


class SpinningTeam:
    """`threads` threads, the caller among them. The others live as long as the process."""

    def __init__(self, threads: int) -> None:
        self.state = np.zeros(BEDS + BED * (threads + 1), np.int64)
        self._address = self.state.ctypes.data
        for number in range(1, threads):
            name = f"engine-cpu-compiled-{number}"
            threading.Thread(target=self._serve, args=(number,), name=name, daemon=True).start()

    def run(self, program: int, threads: int) -> None:
        """Run the program at this address with at most so many threads."""
        run(self._address, program, threads)

    def _serve(self, number: int) -> None:
        while True:
            serve(self._address, number, SPIN)
            time.sleep(UNWOKEN_S)


@functools.cache
def team(threads: int) -> SpinningTeam:
    """The process's team of that size."""
    return SpinningTeam(threads)


class Tensor(NamedTuple):
    """What a step reads or writes. name: of the buffer that has the bytes; address, nbytes: where they are
    when the step runs alone."""

    name: str
    address: int
    nbytes: int


@dataclass(frozen=True)
class ProgramStep:
    """A step that can be part of a program. stride: bytes of scratch for each thread, from call.workspace on;
    all steps share that memory. reads: the tensors that it reads, without weights."""

    call: Call
    stride: int
    flops: int
    nbytes: int
    reads: tuple[Tensor, ...]
    written: Tensor

    @property
    def seconds(self) -> float:
        """A rough guess of its time with one thread."""
        return _seconds(self.flops, self.nbytes)


def _seconds(flops: float, nbytes: float) -> float:
    return flops / FLOPS_A_SECOND + nbytes / BYTES_A_SECOND


def threads_for_work(flops: float, nbytes: float, threads: int) -> int:
    """How many of `threads` are worth using for so much work."""
    return min(threads, 1 + int(_seconds(flops, nbytes) / WORTH_SHARING_S))


@dataclass(frozen=True)
class _Phase:
    steps: tuple[ProgramStep, ...]
    by_images: bool
    units: int
    each: int
    sharing: int  # threads that it is worth
    local: frozenset[str] = frozenset()  # tensors that nobody reads but the block's own steps

    @property
    def tasks(self) -> int:
        return -(-self.units // self.each)

    def places(self) -> tuple[dict[str, ArenaSlot], int]:
        """The places of the local tensors of one block, and the bytes that they need."""
        share = {step.written.name: step.written.nbytes // self.units * self.each for step in self.steps}
        sizes = {name: share[name] for name in self.local}
        read = [([of.name for of in step.reads], step.written.name) for step in self.steps]
        living = lives(read, share, (), [])
        return place({name: living[name] for name in sizes})


class Program:
    """Steps that run one after the other; calling it does one pass. kept: tensors that others read, too;
    None: all of them."""

    def __init__(
        self, steps: Sequence[ProgramStep], threads: int, kept: Collection[str] | None = None
    ) -> None:
        if kept is None:
            kept = {step.written.name for step in steps}
        phases = _phases(steps, threads, kept)
        self.steps = tuple(steps)
        self._team = team(threads)
        self.threads = min(threads, max(min(phase.sharing, phase.tasks) for phase in phases))
        words = np.zeros(HEAD + len(phases) * PHASE + len(steps) * STEP, np.int64)
        words[0] = len(phases)
        # The same for all: one thread may be a step ahead of another.
        stride = max(step.stride for step in steps)
        heads = words[HEAD : HEAD + len(phases) * PHASE].reshape(-1, PHASE)
        rows = words[HEAD + len(phases) * PHASE :].reshape(-1, STEP)
        self._arguments: list[np.ndarray] = []
        at = most = 0
        for head, phase in zip(heads, phases, strict=True):
            head[[TASKS, UNITS, EACH, FIRST, STEPS]] = (
                phase.tasks,
                phase.units,
                phase.each,
                at,
                len(phase.steps),
            )
            slots, nbytes = phase.places()
            most = max(most, nbytes)
            for step in phase.steps:
                row, call = rows[at], step.call
                row[[FUNCTION, SCRATCH, STRIDE]] = call.step.address, call.workspace.ctypes.data, stride
                arguments = call.by_images if phase.by_images else call.by_parts
                for first, of in ((READ, step.reads[0]), (WRITTEN, step.written)):
                    if of.name in phase.local:
                        place_of = call.place_of(of.address)
                        row[first : first + 3] = place_of, slots[of.name].offset, of.nbytes // phase.units
                if row[READ] or row[WRITTEN]:
                    arguments = np.tile(arguments, (threads, 1))
                    row[OWN] = arguments.strides[0]
                row[ARGUMENTS] = arguments.ctypes.data
                self._arguments.append(arguments)
                at += 1
        self.local_nbytes = most * threads
        self._local = np.zeros(self.local_nbytes + ALIGNMENT, np.uint8)
        words[[LOCAL, LOCAL_STRIDE]] = -(-self._local.ctypes.data // ALIGNMENT) * ALIGNMENT, most
        self._words = words
        self._address = words.ctypes.data

    def __call__(self) -> None:
        self._team.run(self._address, self.threads)


def _phases(steps: Sequence[ProgramStep], threads: int, kept: Collection[str]) -> list[_Phase]:
    phases: list[_Phase] = []
    at = 0
    while at < len(steps):
        images = steps[at].call.images
        end = at
        while end < len(steps) and images > 1 and _by_images(steps[end], images):
            end += 1
        phase = None
        while end > at and phase is None:
            others = {of.name for step in (*steps[:at], *steps[end:]) for of in step.reads}
            run = steps[at:end]
            local = {step.written.name for step in run} - others - set(kept)
            if _clash(run, local):
                end -= 1
                continue
            phase = _of_images(run, images, threads, frozenset(local))
            if phase is None:
                break
        if phase is None:
            phase = _of_parts(steps[at], threads)
            end = at + 1
        phases.append(phase)
        at = end
    return phases


def _by_images(step: ProgramStep, images: int) -> bool:
    tensors = [*step.reads, step.written]
    return (
        step.call.images == images
        and step.call.weights_nbytes <= CACHE_NBYTES
        and len(step.reads) == 1
        and all(of.nbytes % images == 0 for of in tensors)
    )


def _clash(run: Sequence[ProgramStep], local: Collection[str]) -> bool:
    """Whether a block would overwrite what another block still reads. Tensors that are not local are where
    the plan put them, and the plan assumes that one step ends before the next begins."""
    arena = [of for step in run for of in (*step.reads, step.written) if of.name not in local]
    spans = {(of.name, of.address, of.address + of.nbytes) for of in arena}
    return any(a[0] != b[0] and a[1] < b[2] and b[1] < a[2] for a, b in itertools.combinations(spans, 2))


def _of_images(
    steps: Sequence[ProgramStep], images: int, threads: int, local: frozenset[str]
) -> _Phase | None:
    """The phase of these steps over blocks of images; None where it is better to divide each step."""
    sharing = threads_for_work(sum(step.flops for step in steps), sum(step.nbytes for step in steps), threads)
    if images < 4 * sharing and images % sharing and max(s.seconds for s in steps) > 20 * WORTH_SHARING_S:
        return None
    block = BLOCK * max(step.reads[0].nbytes + step.written.nbytes for step in steps) // images
    most = BLOCK if block <= CACHE_NBYTES else 1
    tasks = sharing * -(-images // (most * sharing))
    return _Phase(tuple(steps), True, images, -(-images // min(images, tasks)), sharing, local)


def _of_parts(step: ProgramStep, threads: int) -> _Phase:
    parts = step.call.parts
    sharing = threads_for_work(step.flops, step.nbytes, threads)
    tasks = 1 if sharing == 1 else min(parts, TASKS_A_THREAD * sharing)
    return _Phase((step,), False, parts, -(-parts // tasks), sharing)
