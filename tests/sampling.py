"""What each run of the tests takes of much that is alike: a sample, drawn by a seed.

Kernels and tiles that compile, shapes, damaged files, planted mistakes: of each kind a run takes a few. Which
ones it takes depends on KERNELSCOPE_SEED. Where nobody sets it, the seed is the commit's: the same commit is
tested in the same way again, and over many commits all of them have their turn. KERNELSCOPE_SEED=all takes
everything: `make test-whole`.

A test with parameters says by its mark how many it takes:

    @pytest.mark.sampled(4)  # one in four of its cases
    @pytest.mark.parametrize("rung", RUNGS)
    def test_...(rung): ...

Several tests that are alike in what they protect may share one sample, by a name: `sampled(4, "lines")`. So
do those that cost most, by the names of DEAR: a "long" one takes half a second of a processor or more, a
"longest" three, and a "window" is opened. Of a shared sample those are taken first that are near what the
last commit changed, or somebody since: the test itself, what its folder shares, or the folder of the program
that it mirrors. So a run costs the same whatever was changed. Who names files or tests to pytest gets all of
them that are dear.

A case whose kernel was changed by the last commit or since, or a header that the kernel includes, is always
taken. A test that goes through them in a loop is marked `sampled` without a number, and asks `some` or
`number`. Where a test with this mark fails, the seed that repeats it stands below its traceback.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from kernels.registry import Rung

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
VARIABLE = "KERNELSCOPE_SEED"
ALL = "all"
DEAR = {"long", "longest", "window"}  # samples of what costs much, not of what is alike


def settle() -> None:
    """The seed for this process and for all that it starts. Raises ValueError for what is none."""
    word = os.environ.setdefault(VARIABLE, _of_today())
    if word != ALL and not word.isdigit():
        raise ValueError(
            f"{VARIABLE}={word!r} is no seed; a whole number works, and {ALL!r}, which takes everything"
        )


def whole() -> bool:
    return os.environ[VARIABLE] == ALL


def number(kind: str) -> int:
    """A number below 2**31 for what draws by one of its own; for everything it is 0."""
    return 0 if whole() else random.Random(f"{os.environ[VARIABLE]} {kind}").randrange(2**31)


def some(kind: str, every: Sequence[T], count: int) -> list[T]:
    """So many of them, in their order; all where everything is asked for, or where there are no more."""
    if whole() or count >= len(every):
        return list(every)
    taken = random.Random(number(kind)).sample(range(len(every)), count)
    return [every[place] for place in sorted(taken)]


def of(items: Sequence[pytest.Item], named: bool = False) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that this run takes, and those that it leaves out. Of a test with one case alone, because it
    was named on the command line, say, that one is taken. named: these were asked for, not the whole suite.
    """
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and mark.args and not whole():
            groups[mark.args[1] if mark.args[1:] else item.nodeid.partition("[")[0]].append(item)
    left: set[pytest.Item] = set()
    for test, group in groups.items():
        share, *shared = group[0].get_closest_marker("sampled").args  # type: ignore[union-attr]
        if named and not DEAR.isdisjoint(shared):
            continue
        count = -(-len(group) // share)
        taken = {*(_nearest if shared else some)(test, group, count), *filter(_changed, group)}
        left |= set(group) - taken
    return [item for item in items if item not in left], [item for item in items if item in left]


def _nearest(kind: str, group: Sequence[pytest.Item], count: int) -> list[pytest.Item]:
    """So many of them: those that are nearest to what was changed, and of those that are as near a sample."""
    drawn = random.Random(number(kind)).sample(group, len(group))
    far = {path: distance(path) for path in {item.path for item in group}}
    return sorted(drawn, key=lambda item: far[item.path])[:count]


def again() -> str:
    """How what this run has drawn is drawn again."""
    return f"{VARIABLE}={os.environ[VARIABLE]} draws the same; {VARIABLE}={ALL} takes everything"


def _changed(item: pytest.Item) -> bool:
    """Whether it is about a kernel whose text was changed."""
    from kernels.registry import Rung

    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    rungs = [value for value in values if isinstance(value, Rung)]
    return any(not changes().isdisjoint(_files(rung)) for rung in rungs)


def distance(path: Path) -> int:
    """Of a file of tests from what was changed. 0: it was itself; 1: what its folder shares with others, or
    the folder of the program that it mirrors; 2: a folder within that; 3: nothing of these."""
    mirrored, told = ROOT / path.parent.relative_to(TESTS), changes()
    if path in told:
        return 0
    for change in told:
        shared = not change.name.startswith("test_") and change.parent != TESTS
        if change.parent == mirrored or (shared and change.parent in path.parents):
            return 1
    return 2 if mirrored != ROOT and any(mirrored in change.parents for change in told) else 3


@cache
def _files(rung: Rung) -> frozenset[Path]:
    from kernels.registry import headers

    return frozenset(path.resolve() for path in (rung.path, *(header.path for header in headers(rung))))


@cache
def changes() -> frozenset[Path]:
    """Files that differ from those of the commit before, and new ones; none where Git cannot tell."""
    told = _git("diff", "--name-only", "HEAD^") + _git("ls-files", "--others", "--exclude-standard")
    return frozenset(ROOT / name for name in told.splitlines())


def _of_today() -> str:
    """The commit's number; where there is none, the day's."""
    told = _git("rev-parse", "HEAD").strip()
    return str(int(told[:8], 16)) if told else str(date.today().toordinal())


def _git(*words: str) -> str:
    try:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
