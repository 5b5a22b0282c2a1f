"""The control flow of a kernel: basic blocks in an order in which a warp whose lanes went apart meets again.

A warp always runs the lanes whose block is first in this order. So that lanes that wait lie behind those that
run, the order is a topological one in which the blocks of a loop stand together, its header first (a weak
topological order: F. Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kernels.ptx.reader import Instruction, Kernel, Operand, PtxError

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


def blocks_of(kernel: Kernel) -> list[Block]:
    """The blocks in order. Raises PtxError."""
    blocks: list[Block] = [Block()]
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
            if current.instructions or current.ends or current.sync or current.target is not None:
                if not current.ends:
                    current.after = len(blocks)
                current = fresh()
            labels[item] = len(blocks) - 1
            together = ""
            continue
        if current.ends:
            current = fresh()
        first = item.op[0]
        if first in _ENDS:
            if first == "brx":
                raise PtxError(f"PTX line {item.line}: {item.words} is missing")
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
    out = {i: [s for s in (b.after, b.target) if s is not None] for i, b in enumerate(blocks)}
    order = _laid_out([0], _reached(0, out), out)
    place = {old: new for new, old in enumerate(order)}
    ordered = [blocks[i] for i in order]
    for block in ordered:
        block.after = None if block.after is None else place[block.after]
        block.target = None if block.target is None else place[block.target]
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


def _components(starts: Iterable[int], nodes: set[int], out: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Strongly connected components in topological order, of each the block first that was reached first
    (Tarjan's algorithm, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on: set[int] = set()
    found: list[list[int]] = []
    for start in [*starts, *sorted(nodes)]:
        if start in index or start not in nodes:
            continue
        work = [(start, iter(out[start]))]
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
