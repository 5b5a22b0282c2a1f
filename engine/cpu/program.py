"""Run several compiled CPU steps as one call into compiled code, on several threads (`Program`).

A program is a table of phases. Phases run one after the other. There are two sorts of phases. Usually several
steps run in turn over blocks of a few images; this works where a step needs only the same images of the step
before. Else a phase is one step, divided into parts. A block or a part is a task: each free thread takes the
next task. A tensor that only the steps of one block read is in memory of the thread, and stays in its cache.

A team is the thread that calls the program and the threads that help it. The helpers wait for work inside
compiled code. First they spin for a moment (SPIN), because a pass over a small net is over before the system
could wake a thread. Then they sleep there without Python's global lock (GIL): else they would need it one
after the other when they wake. A pass wakes as many threads as it needs. The caller wakes two, each of these
two more, and so on, because waking one takes as long as many a step. Nobody waits for a thread that has taken
no task: on a busy machine the caller does everything.

Functions with `@compiled` have the arguments of a compiled step (kernels.cpu.compiled), whatever they mean
here: an address, two whole numbers `low` and `high`, and `scratch`, which is not used. `program`, `team` and
`counter` point to 64-bit words in memory.
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
    """Wait a moment; returns spins + 1. spins: how many moments were waited already. After PATIENCE moments
    the core is offered to other threads: the one that is waited for may need it."""
    if spins > PATIENCE:
        simd.give_way()
    else:
        simd.pause()
    return spins + 1


@inlined
def wait_until(counter, count):
    """Wait until the word `counter`, which other threads add to, is at least `count`."""
    spins = 0
    while simd.load(counter) < count:
        spins = wait(spins)


@inlined
def take_part(program, thread):
    """Run this program's tasks, phase by phase, as thread number `thread` (0: the caller). A phase begins
    when all tasks of the one before have ended; returns when the last phase has ended. Numbers below 2⁻¹²⁶
    are zeros meanwhile: a net that lets its activations fade would take several times as long."""
    before = simd.without_subnormals()
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
    simd.as_before(before)


@inlined
def welcome(gate, number, seen):
    """Whether the thread of this number may join the pass. gate: the gate's value, not its address; seen: the
    number of the last pass that the thread joined."""
    most = gate // MOST % (PASS // MOST)
    return gate // OPEN % 2 == 1 and gate // PASS != seen and number < most


@inlined
def wake_two(team, number, most):
    """Wake threads 2 × number + 1 and 2 × number + 2 of the team, which thread `number` is responsible for:
    each if it is asleep and among the first `most`."""
    for other in range(2 * number + 1, min(2 * number + 3, most)):
        bed = simd.shifted(team, BEDS + BED * other)
        if simd.swap(bed, ASLEEP, AWAKE):
            simd.rouse(bed)


@compiled
def run(team, low, high, scratch):
    """Run one pass of a program. low: the address of the program's words; high: how many threads of the team
    may take part, the caller among them."""
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
    """What a helper thread does for ever: join passes, and sleep between them. low: its number in the team
    (from 1); high: after so many cycles without work it sleeps. Returns only where the system has no sleep
    that compiled code can call."""
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
    """A caller and `threads` − 1 helper threads, which are started now and live as long as the process. Only
    one thread at a time may call `run`."""

    def __init__(self, threads: int) -> None:
        self.state = np.zeros(BEDS + BED * (threads + 1), np.int64)
        self._address = self.state.ctypes.data
        for number in range(1, threads):
            name = f"engine-cpu-compiled-{number}"
            threading.Thread(target=self._serve, args=(number,), name=name, daemon=True).start()

    def run(self, program: int, threads: int) -> None:
        """Run one pass of a program with at most so many threads; returns when it has ended. program: the
        address of its words."""
        run(self._address, program, threads)

    def _serve(self, number: int) -> None:
        """The body of helper thread `number`."""
        while True:
            serve(self._address, number, SPIN)
            time.sleep(UNWOKEN_S)


@functools.cache
def team(threads: int) -> SpinningTeam:
    """The one team of this size in this process; started at the first call."""
    return SpinningTeam(threads)


class Tensor(NamedTuple):
    """What a step reads or writes. name: of the tensor that holds the bytes. address, nbytes: its memory when
    the step runs outside a program; a program may use other memory."""

    name: str
    address: int
    nbytes: int


@dataclass(frozen=True)
class ProgramStep:
    """A compiled step that can be part of a program.

    call: the step with its arguments (kernels.cpu.compiled). stride: bytes of scratch that each thread needs;
    thread t has them at call.workspace + t × stride, and all steps share that memory. flops, nbytes:
    floating-point operations, and bytes moved, of the whole batch. reads: the tensors that it reads, without
    weights. written: the tensor that it writes.
    """

    call: Call
    stride: int
    flops: int
    nbytes: int
    reads: tuple[Tensor, ...]
    written: Tensor

    @property
    def seconds(self) -> float:
        """Seconds of a pass with one thread, by a rough estimate."""
        return _estimated_seconds(self.flops, self.nbytes)


def _estimated_seconds(flops: float, nbytes: float) -> float:
    return flops / FLOPS_A_SECOND + nbytes / BYTES_A_SECOND


def threads_for_work(flops: float, nbytes: float, threads: int) -> int:
    """How many threads are worth using for so much work, from 1 to `threads`. flops: floating-point
    operations; nbytes: bytes moved."""
    return min(threads, 1 + int(_estimated_seconds(flops, nbytes) / WORTH_SHARING_S))


@dataclass(frozen=True)
class _Phase:
    """Steps over blocks of images (by_images), or one step that is divided into parts. units: images or
    parts in all; each: of them in one task."""

    steps: tuple[ProgramStep, ...]
    by_images: bool
    units: int
    each: int
    sharing: int  # how many threads it is worth using
    local: frozenset[str] = frozenset()  # names of tensors that only the block's own steps read

    @property
    def tasks(self) -> int:
        """How many tasks there are; the last may have fewer units."""
        return -(-self.units // self.each)

    def places(self) -> tuple[dict[str, ArenaSlot], int]:
        """Where each local tensor is in the thread's memory, by name, and the bytes of that memory for one
        block."""
        share = {step.written.name: step.written.nbytes // self.units * self.each for step in self.steps}
        sizes = {name: share[name] for name in self.local}
        read = [([of.name for of in step.reads], step.written.name) for step in self.steps]
        living = lives(read, share, (), [])
        return place({name: living[name] for name in sizes})


class Program:
    """Compiled steps that run one after the other. Calling the object runs one pass and returns when it has
    ended.

    threads: how many it may use, the caller among them; the attribute `threads` says how many it does use.
    kept: names of written tensors that are read outside the program, too, and so have to be where
    Tensor.address says (None: all). local_nbytes: memory of the program for all other tensors.
    """

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
        """Run one pass. Of all programs with the same number of threads, only one may run at a time."""
        self._team.run(self._address, self.threads)


def _phases(steps: Sequence[ProgramStep], threads: int, kept: Collection[str]) -> list[_Phase]:
    """Divide the steps into phases, in order; each phase has as many steps as can go by images."""
    phases: list[_Phase] = []
    at = 0
    while at < len(steps):
        images = steps[at].call.images
        end = at
        while end < len(steps) and images > 1 and _can_go_by_images(steps[end], images):
            end += 1
        phase = None
        while end > at and phase is None:
            others = {of.name for step in (*steps[:at], *steps[end:]) for of in step.reads}
            run = steps[at:end]
            local = {step.written.name for step in run} - others - set(kept)
            if _blocks_clash(run, local):
                end -= 1
                continue
            phase = _phase_of_images(run, images, threads, frozenset(local))
            if phase is None:
                break
        if phase is None:
            phase = _phase_of_parts(steps[at], threads)
            end = at + 1
        phases.append(phase)
        at = end
    return phases


def _can_go_by_images(step: ProgramStep, images: int) -> bool:
    """Whether the step can run over a block of the batch's images: it has one input and small weights."""
    tensors = [*step.reads, step.written]
    return (
        step.call.images == images
        and step.call.weights_nbytes <= CACHE_NBYTES
        and len(step.reads) == 1
        and all(of.nbytes % images == 0 for of in tensors)
    )


def _blocks_clash(run: Sequence[ProgramStep], local: Collection[str]) -> bool:
    """Whether one block could overwrite what another block still reads, because two tensors share bytes.
    Tensors that are not local are where the plan put them. The plan assumes that a step has ended before the
    next begins, which is not so for blocks."""
    arena = [of for step in run for of in (*step.reads, step.written) if of.name not in local]
    spans = {(of.name, of.address, of.address + of.nbytes) for of in arena}
    return any(a[0] != b[0] and a[1] < b[2] and b[1] < a[2] for a, b in itertools.combinations(spans, 2))


def _phase_of_images(
    steps: Sequence[ProgramStep], images: int, threads: int, local: frozenset[str]
) -> _Phase | None:
    """The phase of these steps over blocks of images; None where dividing each step into parts is better."""
    sharing = threads_for_work(sum(step.flops for step in steps), sum(step.nbytes for step in steps), threads)
    if images < 4 * sharing and images % sharing and max(s.seconds for s in steps) > 20 * WORTH_SHARING_S:
        return None
    block = BLOCK * max(step.reads[0].nbytes + step.written.nbytes for step in steps) // images
    most = BLOCK if block <= CACHE_NBYTES else 1
    tasks = sharing * -(-images // (most * sharing))
    return _Phase(tuple(steps), True, images, -(-images // min(images, tasks)), sharing, local)


def _phase_of_parts(step: ProgramStep, threads: int) -> _Phase:
    """The phase of this one step, divided into parts of the kernel's own choosing."""
    parts = step.call.parts
    sharing = threads_for_work(step.flops, step.nbytes, threads)
    tasks = 1 if sharing == 1 else min(parts, TASKS_A_THREAD * sharing)
    return _Phase((step,), False, parts, -(-parts // tasks), sharing)
