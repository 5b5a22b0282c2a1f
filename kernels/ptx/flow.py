"""The control flow of a kernel, and of the functions that it calls: basic blocks in an order in which a warp
whose lanes went apart meets again.

A warp always runs the lanes whose block is first in this order. So that lanes that wait lie behind those that
run, the order is a topological one in which the blocks of a loop stand together, its header first (a weak
topological order: F. Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993). Functions
stand in front of those that call them.

A call: the caller moves what it hands over to registers that all functions share, and lanes go on at the
function's first block, which takes it from there; what comes back goes the same way.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kernels.ptx.lacking import missing
from kernels.ptx.reader import Instruction, Kernel, Operand, PtxError

Node = TypeVar("Node", int, str)  # a block, a function

SYNC = {
    "shfl",
    "vote",
    "match",
    "redux",
    "bar",
    "barrier",
    "elect",
    "mma",
    "wmma",
    "ldmatrix",
    "stmatrix",
    "wgmma",
}
_ENDS = {"bra", "ret", "exit", "trap", "brx"}


@dataclass(slots=True)
class Block:
    """members: of a block that begins with an instruction that lanes do together, the operand with their mask
    (a number, a register; None: all that live). branch: (index, guard) where the end is conditional; after:
    the block behind, None where lanes end here."""

    instructions: list[Instruction] = field(default_factory=list)
    sync: bool = False
    members: Operand | None = None
    target: int | None = None
    guard: tuple[str, bool] | None = None
    after: int | None = None
    ends: bool = False
    waits: bool = False
    # Of a function's block whether lanes go back from it. Of one that calls the instruction, and the first
    # blocks of the functions that it may be; of the one behind it where it was called. Of a jump by number
    # the instruction, and the blocks.
    returns: bool = False
    call: Instruction | None = None
    entries: tuple[int, ...] = ()
    called_at: int | None = None
    table: tuple[int, ...] = ()
    by: Instruction | None = None


def is_sync(instruction: Instruction) -> bool:
    first = instruction.op[0]
    if first in ("bar", "barrier"):
        return True
    return first in SYNC and "sync" in instruction.op


def members_of(instruction: Instruction) -> Operand | None:
    """Who takes part; None: all lanes."""
    op = instruction.op
    if op[:3] in (("bar", "warp", "sync"),):
        return instruction.operands[0]
    if op[0] in ("shfl", "vote", "match", "redux", "elect"):
        return instruction.operands[-1]
    return None


def is_barrier(instruction: Instruction) -> bool:
    if instruction.op[:2] == ("barrier", "cluster"):
        return "wait" in instruction.op
    return instruction.op[0] in ("bar", "barrier") and instruction.op[1:2] != ("warp",)


OUTSIDE = ("vprintf", "__assertfail", "malloc", "free")  # functions that the machine has
SHARED = {
    1: "pred",
    16: "b16",
    32: "b32",
    64: "b64",
}  # types of registers by which functions are given something
_BITS = {"pred": 1, "b8": 16, "u8": 16, "s8": 16, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16}


def is_call(instruction: Instruction) -> bool:
    """Whether lanes go on in a function of the text."""
    return instruction.op[0] == "call" and instruction.operands[1].name not in OUTSIDE


@dataclass(frozen=True, slots=True)
class Linked:
    """A kernel with the functions that it may call. blocks: in order, the first one to begin with. recursive:
    the functions that may be called again before they are over. owner: of a register of a function which."""

    kernel: Kernel
    blocks: list[Block]
    function_of: list[str]
    recursive: frozenset[str]
    owner: Mapping[str, str]


def linked(kernel: Kernel, functions: Mapping[str, Kernel], taken: Collection[str]) -> Linked:
    """taken: the functions whose address something holds. Raises PtxError."""
    parts: dict[str, list[Block]] = {}
    made: dict[str, Kernel] = {}
    calls: dict[str, list[str]] = {}
    own = replace(kernel, registers=dict(kernel.registers), variables=dict(kernel.variables))
    left = [("", own)]
    while left:
        name, part = left.pop()
        if name in parts:
            continue
        if name:
            part = replace(part, registers=dict(part.registers))
        parts[name], made[name] = _own_blocks(part, name), part
        calls[name] = []
        for block in parts[name]:
            if block.call is None:
                continue
            to = block.call.operands[1]
            names = [to.name] if to.kind == "symbol" else [n for n in taken if n in functions]
            if unknown := [n for n in names if n not in functions]:
                raise missing(block.call, unknown[0])
            calls[name] += names
            left += [(n, functions[n]) for n in names]
    if len(parts) == 1:
        return Linked(own, parts[""], [""] * len(parts[""]), frozenset(), {})
    order: list[str] = []
    recursive: set[str] = set()
    for component in _components([""], set(parts), calls)[::-1]:
        order += component
        if len(component) > 1 or component[0] in calls[component[0]]:
            recursive.update(component)
    firsts, first = {}, 1
    for name in order:
        firsts[name] = first
        first += len(parts[name])
    blocks, function_of = [Block(after=firsts[""])], [""]
    for name in order:
        far = firsts[name]
        for block in parts[name]:
            _moved(block, functools.partial(operator.add, far))
            if block.call is not None:
                to = block.call.operands[1]
                names = [to.name] if to.kind == "symbol" else [n for n in taken if n in functions]
                block.entries = tuple(firsts[n] for n in names)
        blocks += parts[name]
        function_of += [name] * len(parts[name])
    owner = {register: name for name in order if name for register in made[name].registers if "'" in register}
    for name in order:
        if name:
            own.registers.update(made[name].registers)
            own.variables.update(made[name].variables)
    own.body = [*kernel.body, *(item for name in order if name for item in made[name].body)]
    return Linked(own, blocks, function_of, frozenset(recursive), owner)


def _moved(block: Block, to: Callable[[int], int]) -> None:
    """The block with other numbers of blocks."""
    block.after = None if block.after is None else to(block.after)
    block.target = None if block.target is None else to(block.target)
    block.called_at = None if block.called_at is None else to(block.called_at)
    block.table = tuple(map(to, block.table))


def _shared(kernel: Kernel, place: str, own: str) -> tuple[str, Operand]:
    """(the word of a move's type, the shared register) for what a register of this name holds."""
    kind = kernel.registers.get(own, "b64")
    bits = _BITS.get(kind) or (64 if kind[1:] == "64" else 32)
    name = f"{place} {bits}"
    kernel.registers[name] = SHARED[bits]
    return SHARED[bits], Operand("register", name)


def _move(of: Instruction, kind: str, to: Operand, value: Operand) -> Instruction:
    return Instruction(("mov", kind), [to, value], None, of.line, of.place)


def _handed(kernel: Kernel, item: Instruction) -> list[Instruction]:
    """What a caller does first."""
    back, _, *given = item.operands
    moves = []
    for n, value in enumerate(given):
        kind, shared = _shared(kernel, f"given {n}", value.name)
        moves.append(_move(item, kind, shared, value))
    if back.kind == "symbol":
        moves.append(_move(item, "b64", _shared(kernel, "into", "")[1], back))
    return moves


def _given_back(kernel: Kernel, item: Instruction) -> list[Instruction]:
    back = item.operands[0]
    if back.kind != "register":
        return []
    kind, shared = _shared(kernel, "back", back.name)
    return [_move(item, kind, back, shared)]


def _first_moves(kernel: Kernel) -> list[Instruction]:
    """What a function does first."""
    start = next((item for item in kernel.body if isinstance(item, Instruction)), None)
    if start is None:
        return []
    moves = []
    for n, name in enumerate(kernel.given):
        kind, shared = _shared(kernel, f"given {n}", name)
        moves.append(_move(start, kind, Operand("register", name), shared))
    into = _shared(kernel, "into", "")[1]
    moves += [_move(start, "b64", Operand("register", n), into) for n in kernel.back if n in kernel.arrays]
    return moves


def _last_moves(kernel: Kernel, item: Instruction) -> list[Instruction]:
    moves = []
    for name in kernel.back:
        if name not in kernel.arrays:
            kind, shared = _shared(kernel, "back", name)
            moves.append(_move(item, kind, shared, Operand("register", name)))
    return moves


def _own_blocks(kernel: Kernel, function: str) -> list[Block]:
    """The blocks of a kernel, or of a function, in order. Raises PtxError."""
    blocks: list[Block] = [Block()]
    tables: list[tuple[int, str, int]] = []
    if function:
        blocks[0].instructions += _first_moves(kernel)
    labels: dict[str, int] = {}
    jumps: list[tuple[int, str, int]] = []
    together: Operand | str | None = ""  # the mask of lanes that are known to be together here

    def fresh() -> Block:
        blocks.append(Block())
        return blocks[-1]

    current = blocks[0]
    for item in kernel.body:
        if isinstance(item, str):
            if item in labels:
                raise PtxError(f"{kernel.name}: the label {item} stands twice")
            begun = current.instructions or current.ends or current.sync or current.called_at is not None
            if begun or current.target is not None:
                if not current.ends:
                    current.after = len(blocks)
                current = fresh()
            labels[item] = len(blocks) - 1
            together = ""
            continue
        if current.ends:
            current = fresh()
        first = item.op[0]
        if first == "brx":
            if (
                item.guard is not None
                or len(item.operands) != 2
                or item.operands[1].name not in kernel.tables
            ):
                raise missing(item)
            current.instructions.append(item)
            current.by, current.ends, together = item, True, ""
            tables.append((len(blocks) - 1, item.operands[1].name, item.line))
            continue
        if is_call(item):
            before = None
            if item.guard is not None:
                before, current.guard, current.target = current, item.guard, len(blocks)
                current = fresh()
                item = Instruction(item.op, item.operands, None, item.line, item.place)
            current.instructions += _handed(kernel, item)
            current.call, current.after = item, len(blocks)
            current = fresh()
            current.called_at = len(blocks) - 2
            current.instructions += _given_back(kernel, item)
            if before is not None:
                before.after = current.after = len(blocks)
                current = fresh()
            together = ""
            continue
        if first in _ENDS:
            if first == "ret" and function:
                if item.guard is not None:
                    current.guard, current.target = item.guard, len(blocks)
                    before, current = current, fresh()
                    current.instructions += _last_moves(kernel, item)
                    current.returns = True
                    before.after = len(blocks)
                    current = fresh()
                else:
                    current.instructions += _last_moves(kernel, item)
                    current.returns = current.ends = True
                together = ""
                continue
            current.instructions.append(item)
            current.guard = item.guard
            together = ""
            if first == "bra":
                if not item.operands or item.operands[0].kind != "symbol":
                    raise PtxError(f"PTX line {item.line}: a branch needs a label")
                jumps.append((len(blocks) - 1, item.operands[0].name, item.line))
            else:
                # Lanes of which the guard holds go to a block in which they end.
                if item.guard is not None:
                    current.target = len(blocks)
                    ending = fresh()
                    ending.ends = True
                    current.after = len(blocks)
                    current = fresh()
                    continue
            if item.guard is None:
                current.ends = True
            else:
                current.after = len(blocks)
                current = fresh()
            continue
        if is_sync(item):
            members = members_of(item)
            if item.guard is not None:
                current.guard = item.guard
                current.target = len(blocks)
                doing = fresh()
                past = len(blocks)
                item = Instruction(item.op, item.operands, None, item.line, item.place, item.used)
                doing.instructions.append(item)
                doing.sync, doing.members, doing.waits = True, members, is_barrier(item)
                blocks[doing_index := past - 1].after = past
                blocks[doing_index - 1].after = past
                current = fresh()
                together = ""
                if doing.waits:
                    current.instructions.append(_result(item))
                continue
            if is_barrier(item) or together == "" or members is None or together != members:
                if current.instructions or current.sync:
                    current.after = len(blocks)
                    current = fresh()
                current.sync, current.members = True, members
                together = members if members is not None and members.kind == "number" else ""
            current.instructions.append(item)
            if is_barrier(item):
                current.waits = True
                current.after = len(blocks)
                current = fresh()
                current.instructions.append(_result(item))
                together = ""
            continue
        current.instructions.append(item)
    if not current.ends:
        current.ends = True
        current.returns = bool(function)
    for index, name, line in tables:
        names = [jump.operands[0].name for jump in kernel.tables[name]]
        if unknown := [label for label in names if label not in labels]:
            raise PtxError(f"PTX line {line}: the label {unknown[0]} is nowhere")
        blocks[index].table, blocks[index].ends = tuple(labels[label] for label in names), False
    for index, label, line in jumps:
        if label not in labels:
            raise PtxError(f"PTX line {line}: the label {label} is nowhere")
        if blocks[index].guard is None:
            blocks[index].after, blocks[index].ends = labels[label], False
        else:
            blocks[index].target = labels[label]
    return _in_order(blocks)


def _result(item: Instruction) -> Instruction:
    """What a barrier gives back, read when it is over."""
    return Instruction(("barrier's result", *item.op), item.operands, None, item.line, item.place)


def _in_order(blocks: list[Block]) -> list[Block]:
    out = {i: [s for s in (b.after, b.target, *b.table) if s is not None] for i, b in enumerate(blocks)}
    order = _laid_out([0], _reached(0, out), out)
    place = {old: new for new, old in enumerate(order)}
    ordered = [blocks[i] for i in order]
    for block in ordered:
        _moved(block, place.__getitem__)
    return ordered


def _reached(start: int, out: Mapping[int, Sequence[int]]) -> set[int]:
    seen, left = {start}, [start]
    while left:
        for successor in out[left.pop()]:
            if successor not in seen:
                seen.add(successor)
                left.append(successor)
    return seen


def _laid_out(starts: Iterable[int], nodes: set[int], out: Mapping[int, Sequence[int]]) -> list[int]:
    order: list[int] = []
    for part in _components(starts, nodes, out):
        if len(part) == 1:
            order += part
            continue
        inside = set(part)
        header = part[0]
        order.append(header)
        inside.remove(header)
        order += _laid_out([s for s in out[header] if s in inside], inside, out)
    return order


def _components(
    starts: Iterable[Node], nodes: set[Node], out: Mapping[Node, Sequence[Node]]
) -> list[list[Node]]:
    """Strongly connected components in topological order, of each the block first that was reached first
    (Tarjan's algorithm, without recursion)."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on: set[Node] = set()
    found: list[list[Node]] = []
    for start in [*starts, *sorted(nodes)]:
        if start in index or start not in nodes:
            continue
        work: list[tuple[Node, Iterator[Node]]] = [(start, iter(out[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in nodes:
                    continue
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on.add(successor)
                    work.append((successor, iter(out[successor])))
                    break
                if successor in on:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while True:
                        member = stack.pop()
                        on.discard(member)
                        part.append(member)
                        if member == node:
                            break
                    found.append(part[::-1])
    return found[::-1]
