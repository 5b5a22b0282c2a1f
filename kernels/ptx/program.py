"""A text of PTX as a program: its kernels compiled for this machine, memory for their buffers, launches, and
what was found and counted."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.cpu import compiled
from kernels.errors import KernelError
from kernels.ptx import machine, printing, products, reader, translate
from kernels.ptx.instructions import TABLE
from kernels.ptx.reader import Kernel, Place, PtxError
from kernels.ptx.translate import Site, Translated

MOST_WARPS = 2048  # of blocks that are resident at once
MOST_SHARED_NBYTES = 227 << 10
MOST_SHAPES_NBYTES = 512 << 20  # of what is kept of accesses, most of which nobody touches
MOST_READERS_NBYTES = 1 << 29  # of when each warp has read what; beyond it is not kept
MOST_CLOCK = 1 << 29  # of a block's clock, whose records have 31 bits for it
WAYS = 4  # shapes of accesses that are kept of each of eight warps at an instruction
TURNS_AT_ONCE, FIRST_TURNS = 2000, 64  # between looks at the clock, and before the first one
LONG = 0.05  # seconds that turns between looks at the clock should take at most
LARGE = 2500  # instructions; more are compiled with less optimization, which takes a tenth of the time
MOST_TEXT = 1024  # characters of a text in a kernel's memory
MOST_KEPT = 1000  # files of machine code in the cache
HEAP_NBYTES, MOST_ALLOCATED = 8 << 20, 1 << 16  # of a launch; pieces of it
HOST = 1  # whoever wrote it before the first launch

_SPACES = ("global", "shared", "local", "param", "generic", "shared")
_READ_ONLY = ("const", "texture")  # spaces that have caches of their own
_KINDS = {"atom": "atom", "red": "atom", "cp": "async"}  # of accesses, by an instruction's first word
_WORDS = {
    machine.OUTSIDE: "outside",
    machine.MISALIGNED: "misaligned",
    machine.UNWRITTEN: "uninitialised",
    machine.LOCAL_UNWRITTEN: "uninitialised",
    machine.RACE_WRITES: "race",
    machine.RACE_READ_WRITE: "race",
    machine.RACE_WRITE_READ: "race",
    machine.WRITES_INPUT: "input_written",
    machine.DIVERGED: "divergent_barrier",
    machine.STUCK: "stuck",
    machine.ENDLESS: "endless",
    machine.MISMATCH: "barrier_mismatch",
    machine.TOO_MANY: "endless",
    machine.OVERTAKEN: "race",
    machine.UNSEEN: "race",
    machine.FAILED: "assert",
    machine.TRAPPED: "trap",
    machine.OVERRUN: "stuck",
    machine.TOO_DEEP: "endless",
    machine.ASTRAY: "outside",
    machine.GONE: "race",
    machine.LEFT: "race",
    machine.UNEVEN: "misaligned",
    machine.NOT_GIVEN: "outside",
}


@dataclass(frozen=True)
class Finding:
    """kind: one of _WORDS. words: a sentence with buffer, element, thread and line. place: of the
    instruction; other: of the one that it meets. count: how often."""

    kind: str
    words: str
    place: Place | None
    other: Place | None
    count: int


@dataclass
class LineCounts:
    """What one line of source has cost, in warp instructions and in requests of memory. units: sectors of 32
    bytes of global and local memory, least: as few as could carry the bytes; wavefronts likewise of shared
    memory. kinds: units by (space, "ld", "st", "atom" or "async", which copies in the background). loaded:
    bytes that lanes read of global memory. divergent: branches at which lanes of a warp went apart."""

    instructions: int = 0
    lanes: int = 0
    divergent: int = 0
    barriers: int = 0
    atomics: int = 0
    loaded: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    kinds: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, other: LineCounts) -> None:
        for name in ("instructions", "lanes", "divergent", "barriers", "atomics", "loaded"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, its in (
            (self.requests, other.requests),
            (self.units, other.units),
            (self.least, other.least),
        ):
            for space, count in its.items():
                mine[space] = mine.get(space, 0) + count
        for key, count in other.kinds.items():
            self.kinds[key] = self.kinds.get(key, 0) + count


@dataclass(frozen=True)
class Printed:
    """What one call of printf in a kernel says. who: thread and block."""

    text: str
    who: str
    place: Place | None


@dataclass
class Report:
    """Of one or several launches. counted: of each the kernel, how often its blocks ran, and what its
    instructions cost in memory (`_Run`); printed: by printf, in the order of the simulated threads; left_out:
    how many more there were than are kept."""

    findings: list[Finding] = field(default_factory=list)
    counted: list[tuple[Translated, np.ndarray, np.ndarray]] = field(default_factory=list)
    printed: list[Printed] = field(default_factory=list)
    left_out: int = 0
    _known: tuple[list[int], dict[tuple[str, int], LineCounts]] = field(default_factory=lambda: ([], {}))

    @property
    def lines(self) -> dict[tuple[str, int], LineCounts]:
        """By file and line."""
        launches = [id(memory) for _, _, memory in self.counted]
        if launches == self._known[0]:
            return self._known[1]
        found: dict[tuple[str, int], LineCounts] = {}
        for launch in self.counted:
            for key, counts in _of_lines(*launch).items():
                found.setdefault(key, LineCounts()).add(counts)
        self._known = launches, found
        return found

    @property
    def total(self) -> LineCounts:
        whole = LineCounts()
        for counts in self.lines.values():
            whole.add(counts)
        return whole


class Program:
    """PTX, read. Kernels are translated and compiled when they are first asked for. keep: their machine code
    stays in the cache."""

    def __init__(self, text: str, keep: bool = True) -> None:
        self.module = reader.read(text)
        self._keep = keep
        self._translated: dict[str, Translated] = {}
        self._addresses: dict[str, int] = {}

    def translated(self, name: str) -> Translated:
        """Raises PtxError where an instruction is missing, with its line."""
        if name not in self._translated:
            if name not in self.module.kernels:
                raise PtxError(
                    f"the PTX has no kernel {name}; it has {', '.join(self.module.kernels) or 'none'}"
                )
            kernel = self.module.kernels[name]
            try:
                made = translate.Translator(self.module, kernel, compiled.ENTRY, TABLE).translated()
            except (IndexError, KeyError):
                raise PtxError(f"{name}: an instruction lacks what it must have") from None
            self._translated[name] = made
        return self._translated[name]

    def lacking(self) -> list[str]:
        """The instructions of all kernels that are missing, each once."""
        found: dict[str, None] = {}
        for kernel in self.module.kernels.values():
            found |= dict.fromkeys(translate.Translator(self.module, kernel, compiled.ENTRY, TABLE).lacking())
        return list(found)

    def kernel(self, name: str) -> Kernel:
        self.translated(name)
        return self.module.kernels[name]

    def address(self, name: str) -> int:
        """Of the kernel's machine code."""
        if name not in self._addresses:
            made = self.translated(name)
            _bind(made.helpers)
            key = f"ptx/{compiled.digest(f'{name} {_optimized(made)}', made.text)}" if self._keep else ""
            self._addresses[name] = compiled.kept(key, lambda: _machine_code(made), MOST_KEPT)
        return self._addresses[name]

    @property
    def granule(self) -> int:
        """log2 of the least bytes that a kernel writes at once."""
        return min((self.translated(name).granule for name in self.module.kernels), default=2)


def _optimized(made: Translated) -> int:
    return 0 if len(made.sites) > LARGE else 1


def _machine_code(made: Translated) -> bytes:
    import llvmlite.binding as llvm

    try:
        module = llvm.parse_assembly(made.text)
        module.verify()
    except RuntimeError as error:
        raise PtxError(f"the PTX cannot be translated: {str(error).strip().splitlines()[0]}") from None
    return bytes(compiled.target(_optimized(made)).emit_object(module))


_bound: set[str] = set()


def _bind(helpers: Iterable[str]) -> None:
    """Tell the linker where these functions of the machine lie; what no kernel calls is not compiled."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in {*helpers} - _bound:
        llvm.add_symbol(
            f"ptx_{name}", getattr(products if hasattr(products, name) else machine, name).address
        )
        _bound.add(name)


def _aligned(nbytes: int, alignment: int = 64) -> np.ndarray:
    whole = np.zeros(nbytes + alignment, np.uint8)
    start = -whole.ctypes.data % alignment
    return whole[start : start + nbytes]


@dataclass
class Buffer:
    """bytes: its content. itemsize: bytes of an element, as findings count them. shadow: who wrote and read
    which part, None: nobody may write it. row: what the machine knows of it (machine.D_DATA and so on)."""

    name: str
    address: int
    bytes: np.ndarray
    itemsize: int
    shadow: np.ndarray | None
    flags: int
    row: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.lies_at(self.bytes)

    def lies_at(self, content: np.ndarray) -> None:
        """Its content is these bytes from now on."""
        self.bytes = content
        shadow = int(self.shadow.ctypes.data) if self.shadow is not None else 0
        self.row = int(content.ctypes.data), content.nbytes, shadow, self.flags


class Device:
    """Memory for a program's kernels, and their launches. Not for several threads at once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._granule = program.granule
        self._first = HOST + 1
        self.buffers: list[Buffer] = []
        self._shapes: dict[int, np.ndarray] = {}
        self._sizes: dict[tuple[Any, ...], _Sizes] = {}
        self._rooms: dict[tuple[int, ...], _Room] = {}  # by kernel and sizes
        self.found = np.zeros((machine.MOST_FOUND, machine.F_WORDS), np.int64)  # by the last launch
        self.found_at = int(self.found.ctypes.data)
        self.report = Report()
        for variable in translate.variables_of(program.module):
            content = np.zeros(variable.nbytes, np.uint8)
            if variable.content is not None:
                content[:] = np.frombuffer(variable.content, np.uint8)
            for offset, name, more in variable.references:
                content[offset : offset + 8].view(np.uint64)[:] = self._address_of(name) + more
            constant = variable.space == "const"
            self.buffer(variable.name, content, 4, writable=not constant, written=True)

    def buffer(
        self, name: str, content: np.ndarray, itemsize: int, writable: bool = False, written: bool = True
    ) -> Buffer:
        """A new buffer with this content. written: reading it is no mistake."""
        held = _aligned(max(content.nbytes, 1))[: content.nbytes]
        held[:] = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
        shadow = None
        if writable:
            shadow = _aligned(32 * (-(-held.nbytes >> self._granule) + 1 if held.nbytes else 1)).view(
                np.int64
            )
        address = (len(self.buffers) + 1 << machine.WINDOW) + machine.MIDDLE
        flags = (0 if writable else machine.READ_ONLY) | (machine.INITIALISED if written else 0)
        self.buffers.append(Buffer(name, address, held, itemsize, shadow, flags))
        return self.buffers[-1]

    def _address_of(self, name: str) -> int:
        """Of a variable or a function of the program."""
        module = self.program.module
        functions = list(module.functions)
        if name in functions:
            return (machine.CODE_WINDOW << machine.WINDOW) + functions.index(name) + 1
        known = translate.addresses_of(module)
        if name not in known:
            raise PtxError(f"a variable begins with the address of {name}, which has none")
        return known[name]

    def forget(self, buffer: Buffer) -> None:
        """Its content counts as never written."""
        if buffer.shadow is not None:
            buffer.shadow[:] = 0

    def named(self, name: str) -> Buffer:
        """A buffer, or a variable of the program. Raises StopIteration."""
        return next(b for b in self.buffers if b.name == name)

    def launch(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: bytes,
        shared_nbytes: int = 0,
        seed: int = 0,
        seconds: float | None = None,
        only: int | None = None,
    ) -> Report:
        """Run a kernel to its end; what was found and counted is also added to `report`. arguments: its
        parameters as they lie in memory. seconds: it is ended after so long. only: so many of its blocks, the
        first ones, run. Raises PtxError, KernelError."""
        program = self.program
        made, kernel, address = program.translated(name), program.kernel(name), program.address(name)
        key = name, *grid, "of", *block, shared_nbytes
        if key not in self._sizes:
            self._sizes[key] = _Sizes(self, made, kernel, grid, block, shared_nbytes)
        sizes = self._sizes[key]
        blocks = sizes.blocks
        if self._first + blocks >= 1 << 31:
            raise KernelError(f"{name}: more blocks were launched than can be told apart")
        run = _Run(self, sizes, arguments, seed)
        launch = run.launch
        launch[machine.L_KERNEL] = address
        if only is not None:
            launch[machine.L_BLOCKS] = min(blocks, only)
            launch[machine.L_RESIDENT] = min(launch[machine.L_RESIDENT], launch[machine.L_BLOCKS])
        started, turns = time.monotonic(), TURNS_AT_ONCE if seconds is None else FIRST_TURNS
        while not launch[machine.L_ENDED]:
            before = time.monotonic()
            machine.run(launch.ctypes.data, turns, 0)
            now = time.monotonic()
            if seconds is None:
                continue
            if now - started > seconds:
                # The next warp that goes round a loop is told to end; later one that waits at a barrier, too.
                launch[machine.L_LIMIT] = 0 if now - started < 2 * seconds else -1
            # A turn in which much is found takes a thousand times as long as one in which nothing is.
            turns = min(8 * turns, TURNS_AT_ONCE) if now - before < LONG else max(turns // 4, 1)
        report = run.report()
        self._first += blocks
        self.report.findings += report.findings
        room = max(0, machine.MOST_SAID - len(self.report.printed))
        self.report.printed += report.printed[:room]
        self.report.left_out += report.left_out + len(report.printed[room:])
        self.report.counted += report.counted
        return report

    @property
    def first(self) -> int:
        return self._first

    def shapes(self, made: Translated, shape: Sequence[int]) -> np.ndarray:
        """What is kept of a kernel's accesses (`machine.H_KEY` and so on), from launch to launch."""
        if id(made) not in self._shapes:
            self._shapes[id(made)] = np.zeros(tuple(shape), np.int64)
        return self._shapes[id(made)]

    def room(self, sizes: _Sizes) -> _Room:
        """The memory of the warps and blocks of such launches."""
        key = id(sizes.made), sizes.warps, sizes.resident, sizes.shared_nbytes, *sizes.block
        room = self._rooms.get(key)
        if room is None or room.worn:
            room = self._rooms[key] = _Room(sizes)
        return room


class _Room:
    """The memory of the warps and blocks that run at once. It is kept from launch to launch: to clear it
    takes longer than many a kernel. What a launch leaves is nothing to the next:

    blocks: renewed by `ready`, but for their clocks, which go on, so that what was before counts as before.
    states: of each warp its words, its frame and its local memory, renewed by `ready`; what products lie in
    (W_WIDE) is written before it is read.
    shared: set by `machine.begin` for each block. shadows: older than the launch, by serial and by clock; of
    what lies between arrays renewed by `ready`.
    known: set by `machine.begin`. lanes, readers: older than the launch, by clock. queues, bulk, products
    that have begun: as many as a counter says, which `machine.begin` sets to zero. stacks: as deep as W_DEPTH
    says, which it does, too.
    """

    def __init__(self, sizes: _Sizes) -> None:
        m, made, warps, resident, block = machine, sizes.made, sizes.warps, sizes.resident, sizes.block
        shared_nbytes, owners, count = sizes.shared_nbytes, sizes.owners, warps * resident
        wide = m.WIDE_NBYTES + 8 * m.PRODUCTS * m.P_WORDS if made.products else 0
        self.own = -(-(8 * m.W_WORDS + made.frame_nbytes + 64 * made.local_nbytes) // 64) * 64
        each = self.own + -(-wide // 64) * 64
        shared_each = -(-(shared_nbytes + 16) // 128) * 128
        shared = _aligned(shared_each * resident, 128)
        grains = (shared_nbytes >> made.shared_granule) + 1
        shadows = _aligned(32 * grains * resident)
        whole = np.zeros(grains << made.shared_granule, bool)
        whole[: min(whole.size, owners.size)] = owners[: whole.size] != 0
        nobodys = ~whole.reshape(grains, -1).all(axis=1)
        self._shadows, self._nobodys = (
            shadows.view(np.int64).reshape(resident, grains, 4),
            np.flatnonzero(nobodys),
        )
        stacks = np.zeros((count if made.calls else 0, m.STACK, 32), np.int64)
        queues = np.zeros((count if made.copies else 0, m.QUEUE * m.Q_WORDS), np.int64)
        rows = warps + 16 + 2 * m.SIGNALS
        known = np.zeros((resident, rows * (warps + 1)), np.int64)
        signals = {"signal", "bulk", "store_later"} & {*made.helpers}
        lanes = np.zeros((resident if signals else 0, rows * warps * 33), np.int32)
        times = 8 * grains * warps if made.meets else 0
        readers = np.zeros(times * resident if times * resident <= MOST_READERS_NBYTES else 0, np.uint8)
        awaited = {"bulk", "store_later"} & {*made.helpers}
        bulk = np.zeros((resident if awaited else 1, m.BULK * m.K_WORDS), np.int64)
        self.states = _aligned(each * count).view(np.int64).reshape(count, each // 8)
        self.addresses = self.states.ctypes.data + each * np.arange(count)
        self.blocks = np.zeros((resident, m.B_WORDS), np.int64)
        self.held = [shared, shadows, queues, known, lanes, bulk, stacks, readers]
        slots = np.arange(resident)
        self.blocks[:, m.B_SHARED] = shared.ctypes.data + slots * shared_each
        self.blocks[:, m.B_SHADOW] = shadows.ctypes.data + slots * 32 * grains
        self.blocks[:, m.B_KNOWN] = known.ctypes.data + slots * known.strides[0]
        self.blocks[:, m.B_BULK] = bulk.ctypes.data + slots * (bulk.strides[0] if len(bulk) > 1 else 0)
        self.blocks[:, m.B_SLOT] = slots
        if signals:
            self.blocks[:, m.B_LANES] = lanes.ctypes.data + slots * lanes.strides[0]
        if readers.size:
            self.blocks[:, m.B_READERS] = readers.ctypes.data + slots * times
        self._blocks_begin = self.blocks.copy()
        # What each warp's state begins with, in words.
        begins = np.zeros((count, m.W_WORDS), np.int64)
        begins[:, m.W_BLOCK] = self.blocks.ctypes.data + 8 * m.B_WORDS * np.repeat(slots, warps)
        begins[:, m.W_INDEX] = np.tile(np.arange(warps), resident)
        begins[:, m.W_FRAME] = self.addresses + 8 * m.W_WORDS
        begins[:, m.W_LOCAL] = begins[:, m.W_FRAME] + made.frame_nbytes
        if made.copies:
            begins[:, m.W_QUEUE] = queues.ctypes.data + queues.strides[0] * np.arange(count)
        if made.calls:
            begins[:, m.W_STACK] = stacks.ctypes.data + stacks.strides[0] * np.arange(count)
        if made.products:
            begins[:, m.W_WIDE] = self.addresses + self.own
            begins[:, m.W_PRODUCTS] = self.addresses + self.own + m.WIDE_NBYTES
        if made.local_nbytes:
            begins[:, m.W_LOCAL_INIT] = begins[:, m.W_LOCAL] + 32 * made.local_nbytes
        places = np.arange(32 * warps, dtype=np.int32)
        x, y = block[0], block[1]
        for axis, of in enumerate((places % x, places // x % y, places // (x * y))):
            words = begins[:, m.W_TID + 16 * axis : m.W_TID + 16 * axis + 16]
            words[:] = np.tile(of.view(np.int64).reshape(warps, 16), (resident, 1))
        self._begins = begins
        # Of the lists of warps and of blocks.
        self.places = int(self.addresses.ctypes.data), int(self.blocks.ctypes.data)

    @property
    def worn(self) -> bool:
        """Whether its clocks may soon have more bits than they have room for."""
        return bool(self.blocks[:, machine.B_CLOCK].max() > MOST_CLOCK)

    def ready(self, address: int) -> None:
        """As at the beginning of a launch, whose state lies there."""
        m = machine
        clocks = self.blocks[:, m.B_CLOCK].copy()
        self.blocks[:] = self._blocks_begin
        self.blocks[:, m.B_CLOCK] = clocks
        self._shadows[:, self._nobodys] = m.NOBODYS << 32
        self.states[:, m.W_WORDS : self.own // 8] = 0
        self._begins[:, m.W_LAUNCH] = address
        self.states[:, : m.W_WORDS] = self._begins


class _Sizes:
    """What launches of one kernel by one grid have in common. words: of their state those that are so from
    launch to launch. Raises KernelError where they cannot be."""

    def __init__(
        self,
        device: Device,
        made: Translated,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int],
        shared_nbytes: int,
    ) -> None:
        m = machine
        self.made, self.kernel, self.cluster = made, kernel, kernel.cluster
        self.grid, self.block = [*grid, 1, 1][:3], [*block, 1, 1][:3]
        threads, blocks, together = math.prod(block), math.prod(grid), math.prod(kernel.cluster)
        if not 0 < threads <= 1024 or blocks < 1:
            raise KernelError(
                f"{kernel.name}: a grid of {tuple(grid)} blocks of {tuple(block)} threads cannot be launched"
            )
        if any(g % c for g, c in zip(self.grid, self.cluster, strict=True)):
            raise KernelError(
                f"{kernel.name}: a grid of {tuple(self.grid)} blocks is no whole number of clusters of "
                f"{self.cluster}"
            )
        self.blocks, self.warps = blocks, -(-threads // 32)
        most = max(1, MOST_WARPS // self.warps) if made.waits else 1
        self.resident = min(blocks, max(1, most // together) * together)
        self.params_nbytes = sum(-(-p.nbytes // max(1, p.align)) * max(1, p.align) for p in kernel.params)
        # Shared memory: the arrays, between them what belongs to nobody, at the end the one without a size.
        end = max((e for _, _, e in made.shared), default=0)
        self.shared_nbytes = max(end, made.dynamic + shared_nbytes if made.dynamic >= 0 else 0)
        if self.shared_nbytes > 2 * MOST_SHARED_NBYTES:
            raise KernelError(f"{kernel.name}: {self.shared_nbytes:,} bytes of shared memory are too many")
        self.owners = owners = np.zeros(self.shared_nbytes + 16, np.uint8)
        for i, (_, begin, stop) in enumerate(made.shared):
            owners[begin:stop] = i % 254 + 1
        if made.dynamic >= 0:
            owners[made.dynamic : made.dynamic + shared_nbytes] = 255
        self.dynamic_nbytes = shared_nbytes
        self.asks = bool({"allocated", "freed"} & {*made.helpers})
        each = 8 * len(made.sites) * m.SHAPES * m.H_WORDS
        shaped = next(
            count for count in (8 * WAYS, 8, 4, 2, 1) if count * each <= MOST_SHAPES_NBYTES or count == 1
        )
        shapes = device.shapes(made, (len(made.sites), m.SHAPES, shaped, m.H_WORDS))
        self.words = np.zeros(m.L_WORDS, np.int64)
        for word, value in {
            m.L_GRANULE: device.program.granule, m.L_SHARED_NBYTES: self.shared_nbytes,
            m.L_OWNERS: owners.ctypes.data, m.L_SHARED_GRANULE: made.shared_granule,
            m.L_SHAPES: shapes.ctypes.data, m.L_KEPT: shaped, m.L_WAYS: max(1, shaped // 8),
            m.L_LOCAL_NBYTES: made.local_nbytes, m.L_WARPS: self.warps, m.L_THREADS: threads,
            m.L_RESIDENT: self.resident, m.L_BLOCKS: blocks, m.L_LIMIT: 1 << 20, m.L_DYNAMIC: shared_nbytes,
            m.L_GX: self.grid[0], m.L_GY: self.grid[1], m.L_GZ: self.grid[2],
            m.L_BX: self.block[0], m.L_BY: self.block[1], m.L_BZ: self.block[2],
            m.L_CLUSTER: together, m.L_CX: self.cluster[0], m.L_CY: self.cluster[1], m.L_CZ: self.cluster[2],
            **{m.L_CLUSTERS + i: self.grid[i] // self.cluster[i] for i in range(3)},
        }.items():  # fmt: skip
            self.words[word] = value
        # What is cleared for each launch lies side by side: its state, then these.
        self.parts = {
            m.L_EXECUTED: 3 * len(made.blocks),
            m.L_MEMORY: m.M_WORDS * len(made.sites),
            m.L_FENCES: (2 * self.warps + 1) * blocks,
            m.L_TOLD_OF: 16 * self.warps * blocks if {"fence", "signal"} & {*made.helpers} else 0,
            m.L_HEAP: m.A_WORDS,
        }


class _Run:
    """The memory of one launch."""

    def __init__(self, device: Device, sizes: _Sizes, arguments: bytes, seed: int) -> None:
        m = machine
        self.device, self.sizes, self.made = device, sizes, sizes.made
        self.grid, self.block, self.cluster = sizes.grid, sizes.block, sizes.cluster
        self.dynamic_nbytes = sizes.dynamic_nbytes
        params_nbytes = max(len(arguments), sizes.params_nbytes)
        whole = np.zeros(m.L_WORDS + sum(sizes.parts.values()) + params_nbytes // 8 + 2, np.int64)
        address, end = int(whole.ctypes.data), m.L_WORDS
        self.launch = launch = whole[:end]
        launch[:] = sizes.words
        parts = {}
        for word, count in sizes.parts.items():
            launch[word], parts[word] = address + 8 * end, whole[end : end + count]
            end += count
        whole[end:].view(np.uint8)[: len(arguments)] = np.frombuffer(arguments, np.uint8)
        self.executed = parts[m.L_EXECUTED].reshape(-1, 3)
        self.memory = parts[m.L_MEMORY].reshape(-1, m.M_WORDS)
        count = len(device.buffers) + 1
        rows = [(0,) * m.D_WORDS, *((*its.row, 0) for its in device.buffers)]
        self.table = np.array(rows + [(0,) * m.D_WORDS] * (MOST_ALLOCATED * sizes.asks), np.int64)
        readers = self._readers() if sizes.made.meets else None
        self.said = np.zeros((m.MOST_SAID if "printed" in self.made.helpers else 0, m.S_WORDS), np.int64)
        room = device.room(sizes)
        self.held: list[Any] = [room, readers]
        self._heap(parts[m.L_HEAP], sizes.asks)
        room.ready(address)
        launch[m.L_PARAMS], launch[m.L_PARAMS_NBYTES] = address + 8 * end, params_nbytes
        launch[m.L_BUFFERS], launch[m.L_COUNT] = self.table.ctypes.data, count
        launch[m.L_FOUND] = device.found_at
        launch[m.L_SAID] = self.said.ctypes.data if self.said.size else 0
        launch[m.L_WARP_STATES], launch[m.L_BLOCK_STATES] = room.places
        launch[m.L_FIRST], launch[m.L_SEED] = device.first, seed

    def _readers(self) -> np.ndarray:
        """Room for when each warp has read what, of buffers that may be written; empty where it is much."""
        m, each = machine, 8 * self.sizes.warps
        granules = -(-self.table[:, m.D_NBYTES] >> self.device.program.granule) * (
            self.table[:, m.D_SHADOW] != 0
        )
        whole = int(granules.sum())
        room = np.zeros(each * whole if each * whole <= MOST_READERS_NBYTES else 0, np.uint8)
        if room.size:
            places = room.ctypes.data + each * (np.cumsum(granules) - granules)
            self.table[:, m.D_READERS] = np.where(granules, places, 0)
        return room

    def _heap(self, heap: np.ndarray, asks: bool) -> None:
        """What a kernel may ask for, nobody has written (machine.A_DATA)."""
        m = machine
        heap[m.A_FIRST] = len(self.device.buffers) + 1
        if asks:
            granule = self.device.program.granule
            data, shadow = _aligned(HEAP_NBYTES), _aligned(32 * (HEAP_NBYTES >> granule))
            self.held += [data, shadow]
            heap[m.A_DATA], heap[m.A_NBYTES], heap[m.A_SHADOW] = (
                data.ctypes.data,
                data.nbytes,
                shadow.ctypes.data,
            )
            heap[m.A_MOST] = MOST_ALLOCATED

    # --- what came of it ---

    def report(self) -> Report:
        count = int(self.launch[machine.L_FOUND_COUNT])
        findings = [self._finding(self.device.found[i]) for i in range(count)]
        said = int(self.launch[machine.L_SAID_COUNT])
        printed = [self._printed(self.said[i]) for i in range(min(said, machine.MOST_SAID))]
        counted = [(self.made, self.executed, self.memory)]
        return Report(findings, counted, printed, max(0, said - machine.MOST_SAID))

    def _printed(self, record: np.ndarray) -> Printed:
        m = machine
        site = self._site(int(record[m.S_SITE]))
        values = record[m.S_VALUES :].tobytes()[: int(record[m.S_NBYTES])]
        text = printing.formatted(self._text(int(record[m.S_FORMAT])), values, self._text)
        return Printed(text, self._thread(int(record[m.S_BLOCK]), int(record[m.S_THREAD])), site.place)

    def _text(self, address: int) -> str:
        """What stands in a buffer up to a zero, "(no text)" where none is."""
        which, offset = address >> machine.WINDOW, (address & machine.OFFSETS) - machine.MIDDLE
        if not 0 < which <= len(self.device.buffers):
            return "(no text)"
        content = self.device.buffers[which - 1].bytes
        if not 0 <= offset < content.nbytes:
            return "(no text)"
        part = content[offset : offset + MOST_TEXT].tobytes()
        return part.partition(b"\0")[0].decode("utf-8", errors="replace")

    def _site(self, number: int) -> Site:
        return self.made.sites[number] if 0 <= number < len(self.made.sites) else self.made.sites[0]

    def _thread(self, serial: int, thread: int) -> str:
        x, y, _ = self.block
        rank, cluster = (
            (serial - self.device.first) % math.prod(self.cluster),
            (serial - self.device.first) // math.prod(self.cluster),
        )
        places = []
        for blocks, of in zip(self.cluster, self.grid, strict=True):
            places.append(cluster % (of // blocks) * blocks + rank % blocks)
            rank, cluster = rank // blocks, cluster // (of // blocks)
        who = _tuple((thread % x, thread // x % y, thread // (x * y)), self.block)
        where = _tuple(places, self.grid)
        return f"thread {who} of block {where}"

    def _element(self, buffer: int, offset: int, nbytes: int) -> tuple[str, str]:
        """(the element in words, by how much it is outside)."""
        if buffer == -machine.SHARED:
            return self._shared_element(offset, nbytes)
        if buffer in (-machine.LOCAL, -machine.PARAM):
            name, size = (
                ("local memory", self.made.local_nbytes)
                if buffer == -machine.LOCAL
                else ("the parameters", 0)
            )
            return f"byte {offset} of {name}", f"which has {size} bytes" if size else "outside"
        if buffer == 0:
            return f"the address {offset & (1 << 64) - 1:#x}, which is in no buffer", ""
        if buffer > len(self.device.buffers):
            name, size, given = "what malloc gave", 4, int(self.table[buffer, machine.D_NBYTES])
            if not given:
                return f"element {offset // size} of {name}", "which is freed"
        else:
            its = self.device.buffers[buffer - 1]
            name, size, given = its.name, its.itemsize, its.bytes.nbytes
        count = given // size
        index = offset // size
        how = f"{-index} in front of it" if index < 0 else f"which has {count}"
        return f"element {index} of {name}", how

    def _shared_element(self, offset: int, nbytes: int) -> tuple[str, str]:
        offset -= (1 << 32) if 1 << 31 <= offset < 1 << 32 else 0  # in front of all of it
        spans = [*self.made.shared]
        if self.made.dynamic >= 0:
            name = "the dynamic shared memory"
            spans.append((name, self.made.dynamic, self.made.dynamic + self.dynamic_nbytes))
        if not spans:
            return f"byte {offset} of shared memory", "of which there is none"
        size = min(4, nbytes) if nbytes else 4

        def apart(span: tuple[str, int, int]) -> int:
            return 0 if span[1] <= offset < span[2] else min(abs(offset - span[1]), abs(offset - span[2] + 1))

        name, begin, end = min(spans, key=apart)
        index = (offset - begin) // size
        unit = "element" if size == 4 else f"{size}-byte element"
        return f"{unit} {index} of {_plain(name)} (shared memory)", f"which has {(end - begin) // size}"

    def _finding(self, found: np.ndarray) -> Finding:
        m = machine
        kind, number, other_number, count, buffer, offset, serial, thread = (int(v) for v in found[:8])
        other_serial, other_thread, mask, value = (int(v) for v in found[8:12])
        site, other = self._site(number), self._site(other_number)
        who = self._thread(serial, thread) if serial else ""
        again = f" ({count:,} times in all)" if count > 1 else ""
        bulk = ".bulk." in site.shown
        does = "writes" if (mask == m.BULK_WRITES if bulk else site.stores) else "reads"
        what = "copy" if bulk else "product"
        at, there = _at(site), _at(other)
        races = kind in (m.RACE_WRITES, m.RACE_READ_WRITE, m.RACE_WRITE_READ)
        # Of a race `value` says how many threads there are, and not how many bytes.
        element, how = self._element(buffer, offset, site.nbytes if races else value)
        if kind == m.OUTSIDE:
            words = f"{at}: {who} {does} {element}{', ' + how if how else ''}{again}"
        elif kind == m.MISALIGNED:
            words = f"{at}: {who} {does} {element}, whose address is no multiple of {value} bytes{again}"
        elif kind in (m.UNWRITTEN, m.LOCAL_UNWRITTEN):
            words = f"{at}: {who} reads {element}, which nobody has written{again}"
        elif kind == m.WRITES_INPUT:
            words = f"{at}: {who} writes {element}, which is only to be read{again}"
        elif races:
            first = "reads" if kind == m.RACE_READ_WRITE else "writes"
            second = "reads" if kind == m.RACE_WRITE_READ else "writes"
            others = self._thread(other_serial, other_thread)
            copied, value = value & 16, value & 7
            if value:  # several: of their warp, of their block, of several blocks
                others = f"several threads, one of them {others},"
            words = (
                f"{at}: {who} {second} {element}, which {others} {first if not value else first[:-1]} at "
                f"{there}; "
                + ("that copy is not waited for" if copied else "")
                + ("" if copied else self._between(serial, thread, other_serial, other_thread))
                + again
            )
        elif kind == m.DIVERGED:
            words = (
                f"{at}: {site.shown} is reached by {bin(mask).count('1')} lanes of a warp while "
                f"{bin(value).count('1')} others that it names do not come"
                f"{f': they wait at {there}' if other_number else ''} ({who}){again}"
            )
        elif kind == m.MISMATCH:
            words = f"threads of one block wait at different barriers: {at} and {there}{again}"
        elif kind == m.STUCK:
            words = (
                f"{at}: {mask} threads wait at a barrier that {value - mask} others of the block do not reach"
                f"{f': some wait at {there}' if other_number else ''}{again}"
            )
        elif kind == m.OVERRUN:
            words = f"{at}: {who} arrives at {element}, where as many have arrived as it was made for{again}"
        elif kind == m.FAILED:
            words = f"{at}: assert({self._text(offset)}) does not hold for {who}{again}"
        elif kind == m.TRAPPED:
            words = f"{at}: {who} ends the kernel by a trap"
            if site.place and site.place.file.endswith("/cooperative_groups.h"):
                words += (
                    "; blocks that wait for each other by this_grid().sync() take a cooperative launch, "
                    "which is none here; two kernels one after the other work"
                )
        elif kind in (m.OVERTAKEN, m.UNSEEN):
            others = self._thread(other_serial, other_thread)
            why = (
                f"the {what} that reads {element} is not waited for before {others} writes there at {there}"
                if kind == m.OVERTAKEN
                else f"the {what} reads {element}, which {others} writes at {there}; no fence.proxy.async "
                "lies between"
            )
            words = f"{at}: {why} ({who}){again}"
        elif kind == m.TOO_DEEP:
            words = (
                f"{at}: {who} calls functions in each other until its stack is full; a loop, or a call that "
                f"ends sooner, works{again}"
            )
        elif kind == m.GONE:
            words = (
                f"{at}: {who} uses the shared memory of another block of its cluster, which may have ended "
                f"by then; no barrier of the cluster lies between{again}"
            )
        elif kind == m.NOT_GIVEN:
            words = (
                f"{at}: {who} frees {offset & (1 << 64) - 1:#x}, which malloc has not given, or which is "
                f"freed already{again}"
            )
        elif kind == m.ASTRAY:
            words = f"{at}: {who} calls a function at {offset & (1 << 64) - 1:#x}, where there is none{again}"
        elif kind == m.LEFT:
            way, end = (
                ("into", "has arrived; wait for its mbarrier")
                if mask == m.BULK_WRITES
                else ("out of", "has been read; cp.async.bulk.commit_group and …wait_group.read 0 work")
            )
            words = f"{at}: {who} begins a copy {way} {element}, and the block ends before it {end}{again}"
        elif kind == m.UNEVEN:
            words = f"{at}: {who} copies {value} bytes at once; a bulk copy takes a multiple of 16{again}"
        elif kind == m.ENDLESS and buffer:
            arrivals = value & 0xFFFFF
            nbytes = (value >> 40 & 0x3FFFFF) - m.TX_ZERO
            parts = [f"{arrivals} more arrival{'s' * (arrivals > 1)}"] * (arrivals > 0)
            parts += [f"{nbytes} more bytes"] * (nbytes > 0)
            lacks = f"it awaits {' and '.join(parts)}" if parts else "nothing is left that completes it"
            if nbytes < 0:
                lacks = f"copies bring {-nbytes} bytes more than were expected"
            words = f"{at}: {who} waits for an mbarrier, {element}, whose phase does not end: {lacks}"
        elif kind == m.TOO_MANY:
            words = f"{at}: {who} begins more copies or products than it waits for"
        else:
            words = f"{at}: the kernel goes round this loop and does not end"
        return Finding(_WORDS[kind], words, site.place, other.place if other_number else None, count)

    @staticmethod
    def _between(serial: int, thread: int, other_serial: int, other_thread: int) -> str:
        if serial != other_serial:
            return "blocks of a launch do not wait for each other"
        if thread >> 5 == other_thread >> 5:
            return "no __syncwarp() and no __syncthreads() lies between"
        return "no __syncthreads() lies between"


def _of_lines(
    made: Translated, executed: np.ndarray, memory: np.ndarray
) -> dict[tuple[str, int], LineCounts]:
    lines: dict[tuple[str, int], LineCounts] = {}
    for sites, (times, lanes, divergent) in zip(made.blocks, executed.tolist(), strict=True):
        for number in sites:
            site = made.sites[number]
            counts = lines.setdefault(line_of(site), LineCounts())
            counts.instructions += times
            counts.lanes += lanes
            first = site.shown.partition(".")[0]
            counts.barriers += times * (first in ("bar", "barrier") and "warp" not in site.shown)
            counts.atomics += times * (first in ("atom", "red"))
            if not site.space:
                continue
            requests, units, least, asking, which = memory[number].tolist()
            space = _SPACES[which] if requests and site.space not in _READ_ONLY else site.space
            if space == "global" and not site.stores:
                counts.loaded += asking * site.nbytes
            counts.requests[space] = counts.requests.get(space, 0) + requests
            counts.units[space] = counts.units.get(space, 0) + units
            counts.least[space] = counts.least.get(space, 0) + least
            kind = _KINDS.get(first, "st" if site.stores else "ld")
            counts.kinds[space, kind] = counts.kinds.get((space, kind), 0) + units
        if divergent and sites:
            lines[line_of(made.sites[sites[-1]])].divergent += divergent
    return lines


def _plain(name: str) -> str:
    """A variable's name as in the source: `tile` of _ZZ4convE4tile."""
    found = re.search(r"E(\d+)(\w+)$", name)
    if name.startswith("_Z") and found and len(found[2]) >= int(found[1]):
        return found[2][: int(found[1])]
    return name


def _tuple(values: Sequence[int], sizes: Sequence[int]) -> str:
    used = max((i + 1 for i, size in enumerate(sizes) if size > 1), default=1)
    return f"({', '.join(map(str, values[:used]))})" if used > 1 else str(values[0])


def line_of(site: Site) -> tuple[str, int]:
    """The file and line of an instruction; without them the line of the PTX."""
    return (site.place.file, site.place.line) if site.place else ("", site.line)


def _at(site: Site) -> str:
    place = site.place
    if place is None:
        return f"PTX line {site.line}"
    name = place.file.rsplit("/", 1)[-1]
    if (place.outer_file, place.outer_line) == (place.file, place.line):
        return f"{name}:{place.line}"
    return f"{name}:{place.line} (called at {place.outer_file.rsplit('/', 1)[-1]}:{place.outer_line})"


def packed(values: Iterable[Any]) -> bytes:
    """Arguments of a kernel, in order, as its parameters lie: numbers of NumPy and structs."""
    content = b""
    for value in values:
        array = np.asarray(value)
        align = max(1, min(16, array.dtype.alignment))
        content = content.ljust(-(-len(content) // align) * align, b"\0") + array.tobytes()
    return content
