"""A kernel of PTX → a function of LLVM that runs one warp: its 32 lanes are vectors, with a mask of those
that take part.

Registers that live from one basic block into another lie in memory, the warp's frame; within a block they are
values of LLVM. So a warp can stop at the end of any block and go on later, each block is compiled by itself,
and the time to compile grows with the length of the kernel alone. A warp stops where it waits at a barrier,
where it has gone round loops often enough, and where its lanes have ended (kernels.ptx.machine has its
state). Blocks stand in the order of kernels.ptx.flow; where lanes go apart, those whose block is first go on.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernels.ptx import flow, machine
from kernels.ptx.lacking import missing
from kernels.ptx.reader import Instruction, Kernel, Module, Operand, Place, PtxError, Variable, flat

BUDGET, SPINNING = 4096, 64  # turns of loops after which a warp lets others go on; one that may wait for them
MOST_LOCAL = 1 << 18  # bytes of a thread's local memory where functions call themselves
GAP = 128  # bytes between two arrays in shared memory, where nothing may be read or written
TYPES = {
    "pred": "i1", "b8": "i8", "u8": "i8", "s8": "i8", "b16": "i16", "u16": "i16", "s16": "i16", "f16": "i16",
    "bf16": "i16", "b32": "i32", "u32": "i32", "s32": "i32", "f32": "float", "b64": "i64", "u64": "i64",
    "s64": "i64", "f64": "double", "f16x2": "i32", "bf16x2": "i32",
}  # fmt: skip
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64, "half": 16}
WHOLE = {"float": "i32", "double": "i64", "half": "i16"}
# Words of instructions by which blocks can wait for each other, and beginnings of those by which they cannot,
# or only within a cluster.
_MEET = {"atom", "red", "membar", "fence", "volatile", "acquire", "relaxed"}
_APART = {("fence", "proxy"), ("fence", "mbarrier_init"), ("barrier", "cluster"), ("red", "async")}


@dataclass(frozen=True, slots=True)
class Site:
    """An instruction, by its number among those of a program. shown: its text."""

    line: int
    place: Place | None
    shown: str
    space: str = ""
    nbytes: int = 0
    stores: bool = False


@dataclass(frozen=True, slots=True)
class Translated:
    """text: LLVM. sites: those of the instructions, the first is of none. blocks: of each block the sites of
    its instructions. shared: (name, begins, ends) of the arrays; dynamic: where that without a size begins.
    granule, shared_granule: log2 of the least bytes that are written at once. waits: blocks of different
    clusters may wait for each other. meets: some warps may wait for each other without the rest of the block.
    helpers: functions of kernels.ptx.machine that it calls."""

    text: str
    sites: tuple[Site, ...]
    blocks: tuple[tuple[int, ...], ...]
    frame_nbytes: int
    local_nbytes: int
    shared: tuple[tuple[str, int, int], ...]
    dynamic: int
    granule: int
    shared_granule: int
    waits: bool
    meets: bool
    copies: bool
    products: bool
    calls: bool
    helpers: tuple[str, ...]


# Each lane waits here for registers of others.
_EXCHANGES = ("shfl", "vote", "match", "redux", "mma")


class Instructions(Protocol):
    """What each instruction is (kernels.ptx.instructions.TABLE)."""

    def handler(self, instruction: Instruction) -> Handler | None: ...

    def results(self, instruction: Instruction) -> int:
        """How many of the first operands it writes."""

    def adds(self, instruction: Instruction) -> bool:
        """Whether it reads what it writes."""

    def wait(self, t: Translator, instruction: Instruction) -> None:
        """Stop at a barrier."""

    def barred(self, t: Translator, instruction: Instruction) -> None:
        """What the barrier gives back, when it is over."""


class Translator:
    """Values are names of LLVM values; every one is a vector of 32, or of 32 conditions."""

    def __init__(self, module: Module, kernel: Kernel, entry: str, table: Instructions) -> None:
        self.module, self.entry, self.table = module, entry, table
        self.functions = {
            name: (machine.CODE_WINDOW << machine.WINDOW) + n for n, name in enumerate(module.functions, 1)
        }
        self.linked = flow.linked(kernel, module.functions, _taken(module))
        self.kernel, self.blocks = self.linked.kernel, self.linked.blocks
        self.lines: list[str] = []
        self.number = 0
        self.sites: list[Site] = [Site(0, None, "")]
        self.intrinsics: dict[str, str] = {}
        self.helpers: set[str] = set()
        self.known: dict[str, tuple[str, str]] = {}  # values of registers in this block
        self.changed: set[str] = set()
        self.carry = ""
        self.here: Instruction
        self.index = 0
        self.block_sites: list[int] = []
        self.bodies: list[list[int]] = []
        self.params: dict[str, int] = {}
        end = 0
        for param in kernel.params:
            end = -(-end // max(1, param.align)) * max(1, param.align)
            self.params[param.name] = end
            end += param.nbytes
        self.params_nbytes = end
        self.globals = addresses_of(module)
        each = [i for b in self.blocks for i in b.instructions]
        # Where an atomic that compares looks again: what is read of it before may be old.
        self.expected = _expected(each)
        self.waits = any(_MEET & {*i.op} and i.op[0] != "mbarrier" and i.op[:2] not in _APART for i in each)
        self.spins = self.waits or any(i.op[0] == "mbarrier" for i in each)
        self.signals = any(i.op[0] == "mbarrier" for i in each)
        self.meets = any(i.op[0] == "mbarrier" or _of_some(i) for i in each)
        self.copies = any(i.op[:2] == ("cp", "async") for i in each)
        self.products = any(i.op[0] == "wgmma" for i in each)
        self._lay_shared()
        self._lay_local()
        self._live()

    # --- memory ---

    def _lay_shared(self) -> None:
        used = {o.name for i in self.kernel.body if isinstance(i, Instruction) for o in flat(i.operands)}
        own = [v for v in self.kernel.variables.values() if v.space == "shared"]
        own += [v for v in self.module.variables.values() if v.space == "shared" and v.name in used]
        self.shared: dict[str, int] = {}
        self.arrays: list[tuple[str, int, int]] = []
        at, self.dynamic = 0, -1
        for variable in sorted(own, key=lambda v: v.external):
            align = max(variable.align, 16)
            at = -(-at // align) * align
            self.shared[variable.name] = at
            if variable.external:
                self.dynamic = at
                continue
            self.arrays.append((variable.name, at, at + variable.nbytes))
            at += variable.nbytes + GAP
        self.shared_end = at

    def _lay_local(self) -> None:
        self.local: dict[str, int] = {}
        at = 0
        for variable in self.kernel.variables.values():
            if variable.space == "local":
                at = -(-at // max(1, variable.align)) * max(1, variable.align)
                self.local[variable.name] = at
                at += variable.nbytes
        # Functions that call themselves have a place for each time.
        self.level_nbytes, deep = -(-at // 16) * 16, self.linked.recursive
        self.local_nbytes = self.level_nbytes * (machine.LEVELS if deep else 1)
        if deep and self.local_nbytes > MOST_LOCAL:
            self.local_nbytes = self.level_nbytes * max(1, MOST_LOCAL // max(1, self.level_nbytes))

    # --- which registers live from block to block ---

    def _live(self) -> None:
        number = {name: i for i, name in enumerate(self.kernel.registers)}
        uses, sets = [], []
        self.in_params: dict[
            str, int
        ] = {}  # registers that are an address of the parameters, and nothing else
        several: set[str] = set()
        for block in self.blocks:
            use = define = 0
            for instruction in block.instructions:
                reads, writes = self._registers(instruction)
                for name in reads:
                    if not define >> number[name] & 1:
                        use |= 1 << number[name]
                for name in writes:
                    define |= 1 << number[name]
                    self._addresses_params(instruction, name, several)
            if block.guard is not None and not define >> number[block.guard[0]] & 1:
                use |= 1 << number[block.guard[0]]
            if block.sync and block.members is not None and block.members.kind == "register":
                use |= 1 << number[block.members.name]
            jump = block.by or block.call
            target = jump.operands[1 if block.call else 0] if jump else None
            if target is not None and target.kind == "register" and not define >> number[target.name] & 1:
                use |= 1 << number[target.name]
            uses.append(use)
            sets.append(define)
        live = [0] * len(self.blocks)  # what lives at the beginning
        behind = [i for i, block in enumerate(self.blocks) if block.called_at is not None]
        self.live_out = [0] * len(self.blocks)
        again = True
        while again:
            again = False
            for i in range(len(self.blocks) - 1, -1, -1):
                block = self.blocks[i]
                out = 0
                for successor in (block.after, block.target, *block.table, *block.entries):
                    if successor is not None:
                        out |= live[successor]
                for successor in behind if block.returns else ():
                    out |= live[successor]
                now = uses[i] | (out & ~sets[i])
                if now != live[i] or out != self.live_out[i]:
                    live[i], self.live_out[i], again = now, out, True
        self.live = live
        carried = 0
        for value in live:
            carried |= value
        self.number_of = number
        self.places: dict[str, int] = {}
        at = 0
        for name, i in number.items():
            if carried >> i & 1:
                self.places[name] = at
                at += -(-max(4, 4 * BITS[TYPES[self.kernel.registers[name]]]) // 64) * 64
        self.frame_nbytes = at

    def _addresses_params(self, instruction: Instruction, name: str, set_before: set[str]) -> None:
        """Note what an instruction sets a register to, where that is an address of the parameters."""
        self.in_params.pop(name, None)
        its = instruction.operands[-1]
        alone = instruction.guard is None and instruction.op[0] == "mov" and name not in set_before
        if alone and its.kind == "symbol" and its.name in self.params:
            self.in_params[name] = self.params[its.name]
        set_before.add(name)

    def param(self, base: Operand) -> int | None:
        """Where in the parameters an address points; None where that is known only when the kernel runs."""
        if base.kind == "symbol":
            return self.params.get(base.name)
        return self.in_params.get(base.name) if base.kind == "register" else None

    def _registers(self, instruction: Instruction) -> tuple[list[str], list[str]]:
        """What an instruction reads, and what it writes."""
        reads: list[str] = []
        writes: list[str] = []
        results = self.table.results(instruction)
        for i, operand in enumerate(instruction.operands):
            registers = [o.name for o in flat([operand]) if o.kind == "register"]
            if i < results and operand.kind not in ("address", "texture"):
                writes += registers
            else:
                reads += registers
        if self.table.adds(instruction):
            reads += writes
        if instruction.guard is not None:
            reads.append(instruction.guard[0])
            reads += writes
        return reads, writes

    # --- text ---

    def emit(self, text: str, kind: str = "v") -> str:
        self.number += 1
        name = f"%{kind}{self.number}"
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def call(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """An intrinsic of LLVM. arguments: (type, value)."""
        kinds = ", ".join(kind for kind, _ in arguments)
        self.intrinsics[name] = f"declare {result} @{name}({kinds})"
        return self.emit(f"call {result} @{name}({', '.join(f'{k} {v}' for k, v in arguments)})")

    def vector(self, name: str, kind: str, *values: str, suffix: str = "") -> str:
        """An intrinsic on vectors of one type."""
        v = f"<32 x {kind}>"
        short = {"float": "f32", "double": "f64", "half": "f16"}.get(kind, kind)
        return self.call(f"llvm.{name}.v32{short}{suffix}", v, *((v, value) for value in values))

    def two(self, operation: str, kind: str, a: str, b: str) -> str:
        return self.emit(f"{operation} <32 x {kind}> {a}, {b}")

    def one(self, operation: str, kind: str, a: str) -> str:
        return self.emit(f"{operation} <32 x {kind}> {a}")

    def cast(self, operation: str, a: str, of: str, to: str) -> str:
        return a if of == to else self.emit(f"{operation} <32 x {of}> {a} to <32 x {to}>")

    def select(self, condition: str, kind: str, a: str, b: str) -> str:
        return self.emit(f"select <32 x i1> {condition}, <32 x {kind}> {a}, <32 x {kind}> {b}")

    def splat(self, kind: str, value: int) -> str:
        """A whole number, or bits, in all lanes."""
        bits = BITS[kind]
        value &= (1 << bits) - 1
        if kind in WHOLE:
            whole = WHOLE[kind]
            return self.emit(f"bitcast <32 x {whole}> splat ({whole} {value}) to <32 x {kind}>")
        return f"splat ({kind} {value})"

    def uniform(self, kind: str, value: str) -> str:
        """A scalar in all lanes."""
        first = self.emit(f"insertelement <32 x {kind}> poison, {kind} {value}, i32 0")
        return self.emit(
            f"shufflevector <32 x {kind}> {first}, <32 x {kind}> poison, <32 x i32> zeroinitializer"
        )

    def mask(self, condition: str) -> str:
        """A vector of conditions as 32 bits."""
        return self.emit(f"bitcast <32 x i1> {condition} to i32")

    def condition(self, mask: str) -> str:
        return self.emit(f"bitcast i32 {mask} to <32 x i1>")

    def word(self, index: int) -> str:
        return self.emit(f"getelementptr i8, ptr %W, i64 {8 * index}", "p")

    # --- registers and operands ---

    def register(self, name: str) -> tuple[str, str]:
        """(value, type) of a register."""
        if name not in self.known:
            kind = TYPES[self.kernel.registers[name]]
            place = self.emit(f"getelementptr i8, ptr %F, i64 {self.places.get(name, 0)}", "p")
            if name not in self.places:
                value = self.splat(kind, 0)  # read before anything was written there
            elif kind == "i1":
                value = self.condition(self.emit(f"load i32, ptr {place}, align 4"))
            else:
                value = self.emit(f"load <32 x {kind}>, ptr {place}, align 64")
            self.known[name] = value, kind
        return self.known[name]

    def fit(self, value: str, of: str, to: str, signed: bool = False) -> str:
        """The bits of a value as another type, cut or extended where it is of another size."""
        if of == to:
            return value
        whole, wanted = WHOLE.get(of, of), WHOLE.get(to, to)
        value = self.cast("bitcast", value, of, whole) if of != whole else value
        if BITS[whole] > BITS[wanted]:
            value = self.cast("trunc", value, whole, wanted)
        elif BITS[whole] < BITS[wanted]:
            value = self.cast("sext" if signed else "zext", value, whole, wanted)
        return self.cast("bitcast", value, wanted, to) if to != wanted else value

    def get(self, operand: Operand, kind: str, signed: bool = False) -> str:
        """An operand as this type of LLVM."""
        if operand.kind == "register":
            value, of = self.register(operand.name)
            if operand.negated:
                value = self.two("xor", "i1", value, "splat (i1 true)")
            return self.fit(value, of, kind, signed)
        if operand.kind == "number":
            bits = operand.value
            if operand.width and BITS[kind] != operand.width:
                bits = _as_width(bits, operand.width, BITS[kind])
            return self.splat(kind, bits)
        if operand.kind == "symbol":
            return self.fit(*self.symbol(operand.name), kind)
        raise missing(self.here)

    def symbol(self, name: str) -> tuple[str, str]:
        if name in self.shared:
            return self.splat("i64", self.shared[name]), "i64"
        if name in self.local:
            place = self.splat("i64", self.local[name])
            if self.linked.function_of[self.index] in self.linked.recursive:
                level = self.emit(f"load <32 x i32>, ptr {self.word(machine.W_LEVEL)}, align 64")
                far = self.two(
                    "mul", "i64", self.cast("zext", level, "i32", "i64"), self.splat("i64", self.level_nbytes)
                )
                place = self.two("add", "i64", place, far)
            return place, "i64"
        if name in self.functions:
            return self.splat("i64", self.functions[name]), "i64"
        if name in self.params:
            return self.splat("i64", self.params[name]), "i64"
        if name in self.globals:
            return self.splat("i64", self.globals[name]), "i64"
        return self.special(name)

    def special(self, name: str) -> tuple[str, str]:
        """A special register."""
        base, _, axis = name.partition(".")
        which = {"x": 0, "y": 1, "z": 2}.get(axis, 3)
        if base == "%tid" and which < 3:
            return self.emit(f"load <32 x i32>, ptr {self.word(machine.W_TID + 16 * which)}, align 64"), "i32"
        scalars = {
            "%cluster_ctaid": ("%B", machine.B_IN_CLUSTER),
            "%clusterid": ("%B", machine.B_CLUSTER),
            "%cluster_nctaid": ("%L", machine.L_CX),
            "%nclusterid": ("%L", machine.L_CLUSTERS),
            "%ctaid": ("%B", machine.B_X),
            "%ntid": ("%L", machine.L_BX),
            "%nctaid": ("%L", machine.L_GX),
        }
        if base in scalars and which < 3:
            pointer, first = scalars[base]
            return self.scalar(pointer, first + which), "i32"
        if name == "%cluster_ctarank":
            return self.scalar("%B", machine.B_RANK), "i32"
        if name == "%cluster_nctarank":
            return self.scalar("%L", machine.L_CLUSTER), "i32"
        if name == "%laneid":
            return self.lanes, "i32"
        if name == "%warpid":
            return self.scalar("%W", machine.W_INDEX), "i32"
        if name == "%nwarpid":
            return self.scalar("%L", machine.L_WARPS), "i32"
        if name == "WARP_SZ":
            return self.splat("i32", 32), "i32"
        if name in ("%smid", "%gridid") or re.fullmatch(r"%envreg\d\d?", name):  # as of a plain launch
            return self.splat("i32", 0), "i32"
        if name == "%nsmid":
            return self.splat("i32", 1), "i32"
        if name == "%dynamic_smem_size":
            return self.scalar("%L", machine.L_DYNAMIC), "i32"
        if name == "%total_smem_size":
            return self.scalar("%L", machine.L_SHARED_NBYTES), "i32"
        if name in ("%clock", "%clock_hi"):
            return self.scalar("%L", machine.L_TURNS), "i32"
        if name in ("%clock64", "%globaltimer"):
            place = self.emit(f"getelementptr i8, ptr %L, i64 {8 * machine.L_TURNS}", "p")
            return self.uniform("i64", self.emit(f"load i64, ptr {place}")), "i64"
        if name.startswith("%lanemask_"):
            one = self.two("shl", "i32", "splat (i32 1)", self.lanes)
            less = self.two("sub", "i32", one, "splat (i32 1)")
            through = self.two("or", "i32", less, one)
            everything = "splat (i32 -1)"
            table = {
                "eq": one, "lt": less, "le": through,
                "gt": self.two("xor", "i32", through, everything),
                "ge": self.two("xor", "i32", less, everything),
            }  # fmt: skip
            if (kind := name.removeprefix("%lanemask_")) in table:
                return table[kind], "i32"
        raise PtxError(
            f"PTX line {self.here.line}: {name} is not declared, and is no special register that is known"
        )

    def scalar(self, pointer: str, index: int) -> str:
        """The low half of a word of a state, in all lanes."""
        place = self.emit(f"getelementptr i8, ptr {pointer}, i64 {8 * index}", "p")
        return self.uniform("i32", self.emit(f"load i32, ptr {place}, align 8"))

    @property
    def lanes(self) -> str:
        return "<" + ", ".join(f"i32 {i}" for i in range(32)) + ">"

    def put(self, operand: Operand, value: str, kind: str, signed: bool = False) -> None:
        """Give a register a value of this type."""
        if operand.kind == "none":
            return
        if operand.kind != "register" or operand.negated:
            raise missing(self.here)
        own = TYPES[self.kernel.registers[operand.name]]
        if (own == "i1") != (kind == "i1"):
            raise missing(self.here)
        value = self.fit(value, kind, own, signed)
        if self.here.guard is not None:
            value = self.select(self.guard, own, value, self.register(operand.name)[0])
        self.known[operand.name] = value, own
        self.changed.add(operand.name)

    # --- helpers of the machine ---

    def site(self, space: str = "", nbytes: int = 0, stores: bool = False) -> int:
        if len(self.sites) >= 1 << 24:
            raise PtxError(f"{self.kernel.name}: too many instructions")
        self.sites.append(Site(self.here.line, self.here.place, self.here.words, space, nbytes, stores))
        self.block_sites[-1] = len(self.sites) - 1
        return len(self.sites) - 1

    def active(self) -> str:
        """Which lanes do this instruction, as 32 bits."""
        if self.here.guard is None:
            return "%act" + str(self.index)
        return self.two_scalars("and", "i32", "%act" + str(self.index), self.mask(self.guard))

    def two_scalars(self, operation: str, kind: str, a: str, b: str) -> str:
        return self.emit(f"{operation} {kind} {a}, {b}")

    def machine(self, helper: str, packed: int, mask: str | None = None) -> None:
        """Call a compiled function of kernels.ptx.machine."""
        self.helpers.add(helper)
        wide = self.emit(f"zext i32 {mask or self.active()} to i64")
        self.line(f"call void @ptx_{helper}(ptr %W, i64 {wide}, i64 {packed}, ptr null)")

    def slot(self, number: int, kind: str) -> str:
        """The place of the values of an operand for a helper."""
        size = 64 if BITS[kind] == 64 else 32
        return self.emit(f"getelementptr i8, ptr %W, i64 {8 * machine.W_V + 32 * size // 8 * number}", "p")

    def store_slot(self, number: int, value: str, kind: str) -> None:
        wide = kind if BITS[kind] >= 32 else "i32"
        value = self.fit(value, kind, wide)
        self.line(f"store <32 x {wide}> {value}, ptr {self.slot(number, wide)}, align 64")

    def load_slot(self, number: int, kind: str) -> str:
        wide = kind if BITS[kind] >= 32 else "i32"
        value = self.emit(f"load <32 x {wide}>, ptr {self.slot(number, wide)}, align 64")
        return self.fit(value, wide, kind)

    def store_addresses(self, value: str) -> None:
        self.line(f"store <32 x i64> {value}, ptr {self.word(machine.W_A)}, align 64")

    def address(self, operand: Operand) -> str:
        if operand.kind != "address":
            raise missing(self.here)
        base, offset = operand.parts[0], operand.value
        if base.kind == "number":
            return self.splat("i64", offset)
        value = self.get(base, "i64")
        return self.two("add", "i64", value, self.splat("i64", offset)) if offset else value

    # --- blocks ---

    def translated(self) -> Translated:
        out: list[str] = []
        for index, block in enumerate(self.blocks):
            self.index = index
            self.block_sites = []
            self._block(block)
            self.bodies.append(self.block_sites)
        body, self.lines = self.lines, []
        self._frame(len(self.blocks))
        head, self.lines = self.lines, []
        declared = [f"declare void @ptx_{name}(ptr, i64, i64, ptr)" for name in sorted(self.helpers)]
        out += [*declared, *sorted(self.intrinsics.values()), ""]
        out += [
            f"define void @{self.entry}(ptr %W, i64 %unused, i64 %more, ptr %scratch) #0 {{",
            *head,
            *body,
            "}",
        ]
        out.append('attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }')
        return Translated(
            "\n".join(out),
            tuple(self.sites),
            tuple(map(tuple, self.bodies)),
            self.frame_nbytes,
            self.local_nbytes,
            tuple(self.arrays),
            self.dynamic,
            self._granule("global"),
            self._granule("shared"),
            self.waits,
            self.meets,
            self.copies,
            self.products,
            any(block.call is not None for block in self.blocks),
            tuple(sorted(self.helpers)),
        )

    def _granule(self, space: str) -> int:
        """What is written is watched in pieces as small as the least store: who reads less than that reads
        part of one."""
        sites = [site for site in self.sites if site.space in (space, "generic")]
        written = [s.nbytes for s in sites if s.shown.partition(".")[0] not in ("ld", "ldu", "ldmatrix")]
        least = min((site.nbytes for site in sites), default=4)
        return min([max(4, least), *written]).bit_length() - 1

    def _block(self, block: flow.Block) -> None:
        i = self.index
        self.known, self.changed, self.carry = {}, set(), ""
        self.label(f"b{i}")
        if block.sync:
            self._together(block)
            self.label(f"go{i}")
        active = self.emit(f"load i32, ptr {self.word(machine.W_ACTIVE)}, align 8")
        self.line(f"%act{i} = add i32 {active}, 0")
        self._count(f"%act{i}")
        if block.sync and self.signals and block.instructions[0].op[0] in _EXCHANGES:
            self._exchanged(active)
        if block.called_at is not None:
            self._back_from(self.blocks[block.called_at])
        for instruction in block.instructions:
            self._do(instruction)
        self._save(i)
        self._leave(block)

    def _exchanged(self, active: str) -> None:
        """Note when all lanes of the warp exchange registers (machine.W_TOGETHER)."""
        live = self.emit(f"load i32, ptr {self.word(machine.W_LIVE)}, align 8")
        block = self.emit(f"load ptr, ptr {self.word(machine.W_BLOCK)}, align 8")
        at = self.emit(f"getelementptr i64, ptr {block}, i64 {machine.B_CLOCK}")
        now = self.emit(f"add i64 {self.emit(f'load i64, ptr {at}, align 8')}, 1")
        self.line(f"store i64 {now}, ptr {at}, align 8")
        last, place = self.word(machine.W_TOGETHER), self.word(machine.W_TOGETHER)
        whole = self.emit(f"icmp eq i32 {active}, {live}")
        then = self.emit(f"load i64, ptr {last}, align 8")
        chosen = self.emit(f"select i1 {whole}, i64 {now}, i64 {then}")
        self.line(f"store i64 {chosen}, ptr {place}, align 8")

    def _do(self, instruction: Instruction) -> None:
        self.here = instruction
        if instruction.op[0] == "barrier's result":
            self.table.barred(self, instruction)
            return
        self.block_sites.append(0)
        if instruction.op[0] not in ("bra", "brx", "ret", "exit"):
            self.guard = self._condition(instruction.guard) if instruction.guard else ""
            handler = self.table.handler(instruction)
            if handler is None:
                raise missing(instruction)
            try:
                handler(self, instruction)
            except (KeyError, IndexError, ValueError, StopIteration, AttributeError):
                raise missing(instruction) from None  # it says something, or has operands, that it never has
        if not self.block_sites[-1]:
            self.site()

    def lacking(self) -> list[str]:
        """The instructions that are missing, each once, in order."""
        found = []
        for index, block in enumerate(self.blocks):
            self.index = index
            self.known, self.changed = {}, set()
            for instruction in block.instructions:
                try:
                    self._do(instruction)
                except PtxError:
                    found.append(instruction.words)
        return list(dict.fromkeys(found))

    def _condition(self, guard: tuple[str, bool]) -> str:
        value, kind = self.register(guard[0])
        if kind != "i1":
            raise PtxError(f"PTX line {self.here.line}: {guard[0]} is no predicate")
        return self.two("xor", "i1", value, "splat (i1 true)") if guard[1] else value

    def _count(self, active: str) -> None:
        self._more(3 * self.index, "1")
        self.intrinsics["llvm.ctpop.i32"] = "declare i32 @llvm.ctpop.i32(i32)"
        lanes = self.emit(f"zext i32 {self.emit(f'call i32 @llvm.ctpop.i32(i32 {active})')} to i64")
        self._more(3 * self.index + 1, lanes)

    def _more(self, counter: int, by: str) -> None:
        place = self.emit(f"getelementptr i64, ptr %E, i64 {counter}", "p")
        before = self.emit(f"load i64, ptr {place}")
        self.line(f"store i64 {self.emit(f'add i64 {before}, {by}')}, ptr {place}")

    def _save(self, i: int) -> None:
        """Write to the frame what others will read."""
        left = [n for n in self.changed if n in self.places and self.live_out[i] >> self.number_of[n] & 1]
        if not left:
            return
        active = self.condition(f"%act{i}")
        for name in sorted(left):
            value, kind = self.known[name]
            place = self.emit(f"getelementptr i8, ptr %F, i64 {self.places[name]}", "p")
            if kind == "i1":
                bits = self.emit(f"and i32 {self.mask(value)}, %act{i}")
                kept = self.emit(
                    f"and i32 {self.emit(f'load i32, ptr {place}')}, {self.emit(f'xor i32 %act{i}, -1')}"
                )
                self.line(f"store i32 {self.emit(f'or i32 {bits}, {kept}')}, ptr {place}, align 4")
            else:
                self.masked_store(kind, value, place, active)

    def masked_store(self, kind: str, value: str, place: str, active: str, align: int = 64) -> None:
        short = {"float": "f32", "double": "f64"}.get(kind, kind)
        name = f"llvm.masked.store.v32{short}.p0"
        v = f"<32 x {kind}>"
        self.intrinsics[name] = f"declare void @{name}({v}, ptr, i32, <32 x i1>)"
        self.line(f"call void @{name}({v} {value}, ptr {place}, i32 {align}, <32 x i1> {active})")

    def _together(self, block: flow.Block) -> None:
        """Go on where all lanes are here that the instruction names; else wait for them."""
        i, instruction = self.index, block.instructions[0]
        self.here = instruction
        active = self.emit(f"load i32, ptr {self.word(machine.W_ACTIVE)}, align 8")
        live = self.emit(f"load i32, ptr {self.word(machine.W_LIVE)}, align 8")
        whole = self.emit(f"icmp eq i32 {active}, {live}")
        self.line(f"br i1 {whole}, label %go{i}, label %some{i}")
        self.label(f"some{i}")
        parked = self.emit(f"load i32, ptr {self.word(machine.W_PARKED)}, align 8")
        pcs = self.emit(f"load <32 x i32>, ptr {self.word(machine.W_PCS)}, align 64")
        here = self.mask(self.emit(f"icmp eq <32 x i32> {pcs}, splat (i32 {i})"))
        mates = self.two_scalars("and", "i32", parked, here)
        joined = self.two_scalars("or", "i32", active, mates)
        rest = self.two_scalars("and", "i32", parked, self.two_scalars("xor", "i32", mates, "-1"))
        self.line(f"store i32 {joined}, ptr {self.word(machine.W_ACTIVE)}, align 8")
        self.line(f"store i32 {rest}, ptr {self.word(machine.W_PARKED)}, align 8")
        if block.members is None:
            needed = live
        elif block.members.kind == "number":
            needed = self.two_scalars("and", "i32", live, str(_signed(block.members.value)))
        else:
            value = self.get(block.members, "i32")
            its = self.select(self.condition(joined), "i32", value, "zeroinitializer")
            whole_mask = self.call("llvm.vector.reduce.or.v32i32", "i32", ("<32 x i32>", its))
            needed = self.two_scalars("and", "i32", live, whole_mask)
            self.known = {}
        lacking = self.two_scalars("and", "i32", needed, self.two_scalars("xor", "i32", joined, "-1"))
        forced = self.emit(f"load i32, ptr {self.word(machine.W_FORCE)}, align 8")
        complete = self.emit(f"icmp eq i32 {lacking}, 0")
        self.line(f"br i1 {complete}, label %go{i}, label %lack{i}")
        self.label(f"lack{i}")
        may = self.emit(f"icmp ne i32 {forced}, 0")
        self.line(f"br i1 {may}, label %alone{i}, label %park{i}")
        self.label(f"park{i}")
        self.masked_store("i32", f"splat (i32 {i})", self.word(machine.W_PCS), self.condition(joined))
        both = self.two_scalars("or", "i32", rest, joined)
        self.line(f"store i32 {both}, ptr {self.word(machine.W_PARKED)}, align 8")
        self.line("br label %schedule")
        self.label(f"alone{i}")
        self.line(f"store i32 0, ptr {self.word(machine.W_FORCE)}, align 8")
        place = self.emit(f"getelementptr i8, ptr %W, i64 {8 * (machine.W_V + 32 * machine.S_RESULT)}", "p")
        self.line(f"store i64 {self.emit(f'zext i32 {needed} to i64')}, ptr {place}")
        self.sites.append(Site(instruction.line, instruction.place, instruction.words))
        self.machine("alone", len(self.sites) - 1, joined)
        self.line(f"br label %go{i}")

    def _leave(self, block: flow.Block) -> None:
        i = self.index
        if block.waits:
            assert block.after is not None
            self.masked_store(
                "i32", f"splat (i32 {block.after})", self.word(machine.W_PCS), self.condition(f"%act{i}")
            )
            self.table.wait(self, block.instructions[-1])
            self.line("br label %schedule")
        elif block.call is not None:
            self._to_function(block)
        elif block.returns:
            self.machine("popped", 0, f"%act{i}")
            self._go_on(self.load_slot(0, "i64"), f"%act{i}")
        elif block.by is not None:
            index = self.get(block.by.operands[0], "i32")
            to = self.splat("i64", block.table[0])
            for number, place in enumerate(block.table[1:], 1):
                its = self.emit(f"icmp eq <32 x i32> {index}, {self.splat('i32', number)}")
                to = self.select(its, "i64", self.splat("i64", place), to)
            self._go_on(to, f"%act{i}")
        elif block.ends:
            live = self.emit(f"load i32, ptr {self.word(machine.W_LIVE)}, align 8")
            left = self.two_scalars("and", "i32", live, self.two_scalars("xor", "i32", f"%act{i}", "-1"))
            self.line(f"store i32 {left}, ptr {self.word(machine.W_LIVE)}, align 8")
            self.line("br label %schedule")
        elif block.guard is None:
            self.line(f"br label %{self._edge(block.after)}")
        else:
            assert block.after is not None
            assert block.target is not None
            condition = self._condition(block.guard)
            taken = self.two_scalars("and", "i32", f"%act{i}", self.mask(condition))
            none = self.emit(f"icmp eq i32 {taken}, 0")
            self.line(f"br i1 {none}, label %{self._edge(block.after)}, label %taken{i}")
            self.label(f"taken{i}")
            every = self.emit(f"icmp eq i32 {taken}, %act{i}")
            self.line(f"br i1 {every}, label %{self._edge(block.target)}, label %apart{i}")
            self.label(f"apart{i}")
            to = self.select(condition, "i32", f"splat (i32 {block.target})", f"splat (i32 {block.after})")
            self.masked_store("i32", to, self.word(machine.W_PCS), self.condition(f"%act{i}"))
            self._more(3 * i + 2, "1")
            if back := [to for to in (block.target, block.after) if to <= i]:
                self.line(f"store i64 {self._said(back[0], i)}, ptr {self.word(machine.W_SAID)}")
            self.line("br label %schedule")

    # --- functions, and jumps by number ---

    def _go_on(self, to: str, active: str) -> None:
        """Lanes go on at blocks whose numbers they have."""
        where = self.cast("trunc", to, "i64", "i32")
        self.masked_store("i32", where, self.word(machine.W_PCS), self.condition(active))
        self.line("br label %schedule")

    def _level(self, step: int, active: str) -> None:
        place = self.word(machine.W_LEVEL)
        level = self.emit(f"load <32 x i32>, ptr {place}, align 64")
        self.masked_store(
            "i32", self.two("add", "i32", level, self.splat("i32", step)), place, self.condition(active)
        )

    def _kept(self, calling: flow.Block) -> list[str]:
        """The registers of a function that may be called again meanwhile which it needs afterwards."""
        own = self.linked.function_of[self.blocks.index(calling)]
        if own not in self.linked.recursive or calling.after is None:
            return []
        live = self.live[calling.after]
        return [n for n in self.places if live >> self.number_of[n] & 1 and self.linked.owner.get(n) == own]

    def _deeper(self, calling: flow.Block) -> bool:
        return any(self.linked.function_of[entry] in self.linked.recursive for entry in calling.entries)

    def _to_function(self, block: flow.Block) -> None:
        assert block.call is not None
        active = f"%act{self.index}"
        self.here = block.call
        self.block_sites.append(0)
        site = self.site()
        for name in self._kept(block):
            value, kind = self.register(name)
            self.store_slot(
                0,
                self.fit(value, kind, "i64") if kind != "i1" else self.cast("zext", value, "i1", "i64"),
                "i64",
            )
            self.machine("pushed", site, active)
        self.store_slot(0, self.splat("i64", block.after or 0), "i64")
        self.machine("pushed", site, active)
        if self._deeper(block):
            self._level(1, active)
        target = block.call.operands[1]
        if target.kind == "symbol":
            self._go_on(self.splat("i64", block.entries[0]), active)
            return
        value, to = self.get(target, "i64"), self.splat("i64", -1)
        for entry in block.entries:
            its = self.splat("i64", self.functions[self.linked.function_of[entry]])
            to = self.select(
                self.emit(f"icmp eq <32 x i64> {value}, {its}"), "i64", self.splat("i64", entry), to
            )
        self.store_slot(0, to, "i64")
        self.store_slot(1, value, "i64")
        self.machine("astray", site, active)
        self._go_on(to, active)

    def _back_from(self, calling: flow.Block) -> None:
        active = f"%act{self.index}"
        if self._deeper(calling):
            self._level(-1, active)
        for name in self._kept(calling)[::-1]:
            self.machine("popped", 0, active)
            value, kind = self.load_slot(0, "i64"), TYPES[self.kernel.registers[name]]
            value = self.cast("trunc", value, "i64", "i1") if kind == "i1" else self.fit(value, "i64", kind)
            self.known[name] = value, kind
            self.changed.add(name)

    def _edge(self, to: int | None) -> str:
        assert to is not None
        return f"back{to}_{self.index}" if to <= self.index else f"to{to}"

    def _frame(self, count: int) -> None:
        """The beginning of the function, and what leads from block to block."""
        w = machine
        self.label("begin")
        self.line(f"%F = getelementptr i8, ptr %W, i64 {8 * w.W_WORDS}")
        for name, index in (("B", w.W_BLOCK), ("L", w.W_LAUNCH)):
            self.line(f"%{name} = load ptr, ptr {self.word(index)}")
        for name, index in (("E", w.L_EXECUTED), ("P", w.L_PARAMS)):
            place = self.emit(f"getelementptr i8, ptr %L, i64 {8 * index}", "p")
            self.line(f"%{name} = load ptr, ptr {place}")
        self.line(f"store i64 {SPINNING if self.spins else BUDGET}, ptr {self.word(w.W_BUDGET)}")
        self.line("br label %schedule")
        self.label("schedule")
        live, parked, barred = (
            self.emit(f"load i32, ptr {self.word(i)}, align 8") for i in (w.W_LIVE, w.W_PARKED, w.W_BARRED)
        )
        held = self.two_scalars("or", "i32", parked, barred)
        free = self.two_scalars("and", "i32", live, self.two_scalars("xor", "i32", held, "-1"))
        self.line(f"br i1 {self.emit(f'icmp eq i32 {free}, 0')}, label %nobody, label %somebody")
        self.label("somebody")
        self._spend("choose", "yield")
        self.label("choose")
        flip = self.emit(f"load i32, ptr {self.word(w.W_FLIP)}, align 8")
        self._choose(free, flip)
        self.label("nobody")
        stuck = self.two_scalars("and", "i32", parked, live)
        self.line(f"br i1 {self.emit(f'icmp eq i32 {stuck}, 0')}, label %over, label %force")
        self.label("force")
        chosen = self._choose(stuck, "0", jump=False)
        rest = self.two_scalars("and", "i32", parked, self.two_scalars("xor", "i32", chosen[0], "-1"))
        self.line(f"store i32 {rest}, ptr {self.word(w.W_PARKED)}, align 8")
        self.line(f"store i32 1, ptr {self.word(w.W_FORCE)}, align 8")
        self.line(f"store i32 {w.NOBODY}, ptr {self.word(w.W_NEXT)}, align 8")
        self._jump(chosen[1])
        self.label("over")
        dead = self.emit(f"icmp eq i32 {live}, 0")
        status = self.emit(f"select i1 {dead}, i64 {w.EXITED}, i64 {w.AT_BARRIER}")
        self.line(f"store i64 {status}, ptr {self.word(w.W_STATUS)}")
        self.line("ret void")
        self.label("yield")
        self.line(f"store i64 {w.YIELDED}, ptr {self.word(w.W_STATUS)}")
        self.line("ret void")
        backs: set[tuple[int, int]] = set()
        for i, block in enumerate(self.blocks):
            for to in (block.after, block.target):
                if to is not None and to <= i and not block.waits:
                    backs.add((to, i))
        for to, i in sorted(backs):
            self.label(f"back{to}_{i}")
            self.line(f"store i64 {self._said(to, i)}, ptr {self.word(w.W_SAID)}")
            self._spend(f"to{to}", f"stop{to}")
        for to in range(count):
            self.label(f"to{to}")
            following = self.emit(f"load i32, ptr {self.word(w.W_NEXT)}, align 8")
            first = self.emit(f"icmp ult i32 {to}, {following}")
            self.line(f"br i1 {first}, label %b{to}, label %leave{to}")
            self.label(f"leave{to}")
            self._remember(to)
            self.line("br label %schedule")
            if any(t == to for t, _ in backs):
                self.label(f"stop{to}")
                self._remember(to)
                self.line("br label %yield")

    def _said(self, to: int, last: int) -> int:
        """The site by which an edge back is named: the last one of its loop that has a place in the source. A
        compiler gives none to a jump that it has made itself, and a loop may have nothing else."""
        bodies = [*self.bodies, self.block_sites][: last + 1]
        numbers = [number for sites in bodies for number in sites if number]
        of_loop = {number for sites in bodies[to:] for number in sites}
        placed = [number for number in numbers if self.sites[number].place is not None]
        within = [number for number in placed if number in of_loop]
        return next((found[-1] for found in (within, placed, numbers) if found), 0)

    def _remember(self, to: int) -> None:
        active = self.condition(self.emit(f"load i32, ptr {self.word(machine.W_ACTIVE)}, align 8"))
        self.masked_store("i32", f"splat (i32 {to})", self.word(machine.W_PCS), active)

    def _spend(self, on: str, out: str) -> None:
        place = self.word(machine.W_BUDGET)
        left = self.emit(f"sub i64 {self.emit(f'load i64, ptr {place}')}, 1")
        self.line(f"store i64 {left}, ptr {place}")
        self.line(f"br i1 {self.emit(f'icmp sgt i64 {left}, 0')}, label %{on}, label %{out}")

    def _choose(self, among: str, flip: str, jump: bool = True) -> tuple[str, str]:
        """Of these lanes run those whose block is first (with a flip: last)."""
        w = machine
        pcs = self.emit(f"load <32 x i32>, ptr {self.word(w.W_PCS)}, align 64")
        keys = self.two("xor", "i32", pcs, self.uniform("i32", flip))
        keys = self.select(self.condition(among), "i32", keys, f"splat (i32 {w.NOBODY})")
        least = self.call("llvm.vector.reduce.umin.v32i32", "i32", ("<32 x i32>", keys))
        are = self.emit(f"icmp eq <32 x i32> {keys}, {self.uniform('i32', least)}")
        chosen = self.two_scalars("and", "i32", self.mask(are), among)
        self.line(f"store i32 {chosen}, ptr {self.word(w.W_ACTIVE)}, align 8")
        others = self.select(are, "i32", f"splat (i32 {w.NOBODY})", keys)
        following = self.call("llvm.vector.reduce.umin.v32i32", "i32", ("<32 x i32>", others))
        pc = self.two_scalars("xor", "i32", least, flip)
        if jump:
            nobody = self.emit(f"icmp eq i32 {following}, {w.NOBODY}")
            flipped = self.emit(f"select i1 {nobody}, i32 {w.NOBODY}, i32 0")
            straight = self.emit(f"icmp eq i32 {flip}, 0")
            following = self.emit(f"select i1 {straight}, i32 {following}, i32 {flipped}")
            self.line(f"store i32 {following}, ptr {self.word(w.W_NEXT)}, align 8")
            self._jump(pc)
        return chosen, pc

    def _jump(self, pc: str) -> None:
        cases = " ".join(f"i32 {i}, label %b{i}" for i in range(len(self.blocks)))
        self.line(f"switch i32 {pc}, label %over [{cases}]")


def addresses_of(module: Module) -> dict[str, int]:
    """Where the variables in global and constant memory lie, in the order of their buffers."""
    return {v.name: (i << machine.WINDOW) + machine.MIDDLE for i, v in enumerate(variables_of(module), 1)}


def _expected(each: Sequence[Instruction]) -> set[str]:
    """Registers whose value an atomic compares with what is there."""
    found = {i.operands[2].name for i in each if i.op[0] == "atom" and "cas" in i.op and len(i.operands) > 2}
    moves = [i.operands for i in each if i.op[0] == "mov" and len(i.operands) == 2]
    while more := {x.name for d, x in moves if d.name in found} - found:
        found |= more
    return found - {""}


def _of_some(instruction: Instruction) -> bool:
    """Whether this barrier may be one of some warps alone."""
    if instruction.op[0] not in ("bar", "barrier") or instruction.op[1] in ("warp", "cluster"):
        return False
    which, *count = instruction.operands["red" in instruction.op :]
    return which.kind != "number" or which.value != 0 or len(count) > ("red" in instruction.op)


def _taken(module: Module) -> list[str]:
    """The functions whose address something holds."""
    held = {name for v in module.variables.values() for _, name, _ in v.references}
    for part in (*module.kernels.values(), *module.functions.values()):
        for item in part.body:
            if isinstance(item, Instruction) and item.op[0] != "call":
                held |= {o.name for o in flat(item.operands) if o.kind == "symbol"}
    return [name for name in module.functions if name in held]


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _as_width(bits: int, of: int, to: int) -> int:
    """A float's bits in another precision."""
    value = struct.unpack("<f" if of == 32 else "<d", bits.to_bytes(of // 8, "little"))[0]
    if to not in (32, 64):
        raise PtxError(f"a float of {of} bits stands where one of {to} should")
    return int.from_bytes(struct.pack("<f" if to == 32 else "<d", value), "little")


def variables_of(module: Module) -> list[Variable]:
    """What lies in global and constant memory, in the order of its buffers."""
    return [v for v in module.variables.values() if v.space in ("global", "const")]


Handler = Callable[[Translator, Instruction], None]
