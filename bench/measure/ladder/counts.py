"""What a kernel that ran without a GPU has cost, in sentences: counts, never times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bench.words import units
from kernels.gpus import SECTOR, Floor, Gpu
from kernels.ptx.program import LineCounts, Report
from kernels.ptx.reads import Reads

NAMES_OF_COUNTS = (
    *("instructions", "lanes", "divergent", "barriers", "atomics", "requests", "sectors", "least_sectors"),
    *("shared_requests", "wavefronts", "least_wavefronts", "local_sectors"),
)
LEAST, LEAST_OF = "least", ("sectors", "wavefronts")  # of which the fewest are known that there can be
WORST = 3  # lines that are named, of each kind
SLACK = 0.25  # beyond the least, as a part of it, that is not worth a word
IDLE = 0.1  # lanes of all that idle from which a divergent branch is named
OFTEN = 4  # times that a block reads an element, from which that is named
PART = 0.1  # of what a block reads, from which a line that reads it is named
WARP = 32  # lanes


def totals(report: Report) -> dict[str, int]:
    """The counts of a pass, by name: `instructions` of warps and their `lanes`, branches at which a warp was
    `divergent`, `barriers`, `atomics`; of global memory `requests`, `sectors` (of 32 bytes) and the
    `least_sectors` that carry as much, of each line no more than it has; of shared memory
    `shared_requests`, `wavefronts`, `least_wavefronts`; of local memory `local_sectors`."""
    total = report.total

    def least(space: str) -> int:
        # A line whose lanes read one address has fewer than that, which makes up for no other line.
        return sum(min(it.units.get(space, 0), it.least.get(space, 0)) for it in report.lines.values())

    return {
        **{name: getattr(total, name) for name in ("instructions", "lanes", "divergent", "barriers")},
        "atomics": total.atomics,
        "requests": total.requests.get("global", 0),
        "sectors": total.units.get("global", 0),
        "least_sectors": least("global"),
        "shared_requests": total.requests.get("shared", 0),
        "wavefronts": total.units.get("shared", 0),
        "least_wavefronts": least("shared"),
        "local_sectors": total.units.get("local", 0),
    }


def floor(gpu: Gpu, floor: Floor, counted: Mapping[str, int], nbytes: int) -> str:
    """The floor of a kernel in a sentence. nbytes: what it reads and writes at least."""

    of = {
        "instructions": f"{counted['instructions']:,} warp instructions have to be issued",
        "sectors": f"{units.nbytes(SECTOR * counted['sectors'])} move in sectors of global memory, where all "
        f"that is read and written has {units.nbytes(nbytes)}",
        "wavefronts": f"{counted['wavefronts']:,} wavefronts of shared memory follow each other"
        + (
            f", where {least:,} carry as much"
            if (least := counted["least_wavefronts"]) < counted["wavefronts"]
            else ""
        ),
        "memory": f"{units.nbytes(nbytes)} are read and written, and its L2 cache has "
        f"{units.nbytes(gpu.l2_nbytes)}",
    }[floor.by]
    time = units.duration(floor.seconds * 1e9)
    return f"no less than {time} on {gpu.name}: {of} (a floor from counts and the data sheet, and no time)"


@dataclass(frozen=True)
class Cost:
    """What a line costs beyond what it must. kind: "bank conflict", "uncoalesced access", "divergent branch",
    "redundant loads", "local memory"; words: the sentence with the line, what is seen there and what would
    end it. array: of shared memory, where it is one."""

    kind: str
    file: str
    line: int
    words: str
    array: str = ""


def sentences(
    report: Report, shape: str, source: str, reads: Mapping[tuple[str, int], Reads] | None = None
) -> list[str]:
    """The kernel as a whole, then the lines that cost most beyond what they must. shape: in words."""
    total = report.total
    lanes = total.lanes / max(1, total.instructions)
    whole = f"on {shape}: {total.instructions:,} warp instructions, {lanes:.1f} of {WARP} lanes busy; "
    return [whole + "; ".join(_memory(total)), *(cost.words for cost in costs(report, source, reads or {}))]


def costs(report: Report, source: str, reads: Mapping[tuple[str, int], Reads]) -> list[Cost]:
    """The lines that cost most, of each kind the worst first. source: of the rung's own file, which other
    files that it includes are not; reads: what one block reads (kernels.ptx.reads)."""
    text = source.splitlines()
    found: list[Cost] = []
    for space, make in (("global", _uncoalesced), ("shared", _conflict)):
        over = {key: its.units.get(space, 0) - its.least.get(space, 0) for key, its in report.lines.items()}
        many = {key: it for key, it in over.items() if it > report.lines[key].least.get(space, 0) * SLACK}
        found += [
            make(key, report.lines[key], _line(text, key), source, reads.get(key))
            for key in sorted(many, key=lambda key: -many[key])[:WORST]
        ]
    # What printf is given lies in local memory, too, and nothing can be done about it.
    if slow := {
        key: it.units["local"]
        for key, it in report.lines.items()
        if it.units.get("local") and "printf(" not in _line(text, key)
    }:
        # Where it is read with an index that nobody knows, and not where it is filled.
        key = max(slow, key=lambda key: (report.lines[key].kinds.get(("local", "ld"), 0), slow[key]))
        found.append(_local(key, slow[key], len(slow), _line(text, key), source))
    lost = 1 - report.total.lanes / max(1, WARP * report.total.instructions)
    # Once alone a warp goes apart where a row ends, which is no fault.
    apart = {key: its.divergent for key, its in report.lines.items() if its.divergent > 1}
    if lost > IDLE and apart:
        key = max(apart, key=lambda key: apart[key])
        found.append(_divergent(key, apart[key], lost, _line(text, key)))
    every = sum(it.nbytes for it in reads.values())
    several = {
        key: it
        for key, it in reads.items()
        if it.distinct and it.nbytes >= OFTEN * it.distinct and it.nbytes > PART * every
    }
    if several:
        key = max(several, key=lambda key: several[key].nbytes - several[key].distinct)
        found.append(_redundant(key, several[key], _line(text, key)))
    return found


def _line(text: Sequence[str], key: tuple[str, int]) -> str:
    """The source of a line, without its comment; "" where it is of another file."""
    _, number = key
    return text[number - 1].partition("//")[0].strip() if 0 < number <= len(text) else ""


def _at(key: tuple[str, int]) -> str:
    return f"{PurePosixPath(key[0]).name}:{key[1]}"


def _quoted(line: str) -> str:
    return f" in `{line}`" if line else ""


def _uncoalesced(key: tuple[str, int], its: LineCounts, line: str, source: str, reads: Reads | None) -> Cost:
    sectors, least = its.units["global"], its.least["global"]
    apart = reads.stride if reads is not None else None
    seen = (
        f"neighbouring threads are {apart:,} elements apart"
        if apart is not None and abs(apart) > 1
        else "neighbouring threads do not use neighbouring elements"
    )
    words = (
        f"{_at(key)}: uncoalesced access: {sectors:,} sectors of global memory where {least:,} carry as "
        f"much{_quoted(line)}: {seen}; let threadIdx.x count along the elements that lie next to each other"
    )
    return Cost("uncoalesced access", *key, words)


def _conflict(key: tuple[str, int], its: LineCounts, line: str, source: str, reads: Reads | None) -> Cost:
    wavefronts, least = its.units["shared"], its.least["shared"]
    ways = wavefronts / max(1, least)
    array, indices = shared_array(line, source)
    named = f"{ways:.0f}-way" if abs(ways - round(ways)) < 0.05 else f"{ways:.1f}-way (on average)"
    words = (
        f"{_at(key)}: {named} bank conflict: {wavefronts:,} wavefronts of shared memory where {least:,} "
        f"suffice"
        f"{f' in `{array}{indices}`' if array else _quoted(line)}: threads of a warp use different words of "
        "one bank"
    )
    if padded := padding(array, source):
        words += f"; longer rows may end it, as in `{padded[1]}`"
    else:
        words += "; let neighbouring threads use neighbouring elements, or make a row one element longer"
    return Cost("bank conflict", *key, words, array)


def _local(key: tuple[str, int], sectors: int, lines: int, line: str, source: str) -> Cost:
    declared = set(
        re.findall(r"^(?!.*__shared__).*?\b(?:float\d?|int|unsigned|half|double)\s+(\w+)\s*\[", source, re.M)
    )
    array = next((name for name in re.findall(r"\b(\w+)\s*\[", line) if name in declared), "")
    others = f" (and {lines - 1} more such lines)" if lines > 1 else ""
    words = (
        f"{_at(key)}: local memory: {sectors:,} sectors{_quoted(line)}{others}: "
        f"{f'`{array}`' if array else 'an array of each thread'} is kept in global memory and not in "
        "registers, because its index is not known when the kernel is compiled; unroll the loop over it "
        "(#pragma unroll, with a constant number of turns), or use shared memory"
    )
    return Cost("local memory", *key, words)


def _divergent(key: tuple[str, int], times: int, lost: float, line: str) -> Cost:
    words = (
        f"{_at(key)}: divergent branch: threads of a warp go different ways {times:,} times{_quoted(line)}, "
        f"and {lost:.0%} of all lanes idle; let the condition be the same for the {WARP} threads of a warp"
    )
    return Cost("divergent branch", *key, words)


def _redundant(key: tuple[str, int], its: Reads, line: str) -> Cost:
    times = its.nbytes / its.distinct
    words = (
        f"{_at(key)}: redundant loads: the threads of a block read each element {times:.0f} times from "
        f"global memory{_quoted(line)}; let the block load it once into shared memory and read it there"
    )
    return Cost("redundant loads", *key, words)


def shared_array(line: str, source: str) -> tuple[str, str]:
    """The first array of shared memory that a line uses with an index, and the index as it stands there;
    ("", "") where there is none."""
    for name in re.findall(r"__shared__[^;=]*?\b(\w+)\s*(?:\[[^\]]*\]\s*)+;", source):
        used = re.search(rf"\b{name}\s*((?:\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\])+)", line)
        if used and not line.startswith("__shared__"):
            return name, used[1]
    return "", ""


def padding(array: str, source: str, more: int = 1) -> tuple[str, str] | None:
    """The declaration of an array of rows in shared memory, and the same with rows of so many elements more;
    None where it has no rows."""
    declared = re.search(rf"\b{array}\s*((?:\[[^\]]*\]\s*)+)\[([^\]]*)\]\s*;", source) if array else None
    if declared is None:
        return None
    before = declared[0].rstrip("; ")
    size = declared[2].strip()
    longer = f"{int(size) + more}" if size.isdecimal() else f"{size} + {more}"
    return before, f"{array}{declared[1].strip()}[{longer}]"


def _memory(total: LineCounts) -> Iterator[str]:
    named = {"global": "sectors of 32 bytes", "shared": "wavefronts", "local": "sectors of 32 bytes"}
    for space, unit in named.items():
        if requests := total.requests.get(space):
            each = total.units[space] / requests
            yield f"{space} memory: {requests:,} requests of {each:.1f} {unit} each"
    if total.barriers:
        yield f"{total.barriers:,} waits at barriers"
    if total.atomics:
        yield f"{total.atomics:,} atomic instructions"
