"""What each run of the tests takes of much that is alike: a sample, drawn by a seed.

Kernels and tiles that compile, shapes, damaged files, planted mistakes: of each kind a run takes a few. Which
ones it takes depends on KERNELSCOPE_SEED. Where nobody sets it, the seed is the commit's: the same commit is
tested in the same way again, and over many commits all of them have their turn. KERNELSCOPE_SEED=all takes
everything: `make test-whole`.

A test with parameters says by its mark how many it takes:

    @pytest.mark.sampled(4)  # one in four of its cases
    @pytest.mark.parametrize("rung", RUNGS)
    def test_...(rung): ...

Several tests that are alike in what they protect may share one sample, by a name: `sampled(4, "lines")`.

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
VARIABLE = "KERNELSCOPE_SEED"
ALL = "all"


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


def of(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that this run takes, and those that it leaves out. Of a test with one case alone, because it
    was named on the command line, say, that one is taken."""
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and mark.args and not whole():
            groups[mark.args[1] if mark.args[1:] else item.nodeid.partition("[")[0]].append(item)
    left: set[pytest.Item] = set()
    for test, group in groups.items():
        share = group[0].get_closest_marker("sampled").args[0]  # type: ignore[union-attr]
        taken = {*some(test, group, -(-len(group) // share)), *filter(_changed, group)}
        left |= set(group) - taken
    return [item for item in items if item not in left], [item for item in items if item in left]


def again() -> str:
    """How what this run has drawn is drawn again."""
    return f"{VARIABLE}={os.environ[VARIABLE]} draws the same; {VARIABLE}={ALL} takes everything"


def _changed(item: pytest.Item) -> bool:
    """Whether it is about a kernel whose text was changed."""
    from kernels.registry import Rung

    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    rungs = [value for value in values if isinstance(value, Rung)]
    return any(not changes().isdisjoint(_files(rung)) for rung in rungs)


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
