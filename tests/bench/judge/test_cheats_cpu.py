"""No kernel of the corpus is right at a time that is not that of its work, in ladders as users run them.

Each run takes a few; `make attack` takes all.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests import sampling
from tests.bench.judge import attack, corpus
from tests.bench.judge.corpus import Cheat

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_long_as_the_program")]

SHARED, FURTHER = 1, 1  # of those that share a ladder; and ladders of one other kind each


def _some() -> list[Cheat]:
    """Of those that share the largest group one of each of a few families, and of other families a few."""
    every = corpus.planted("cpu")
    if sampling.whole():
        return list(every)
    drawn = random.Random(sampling.number("cheats"))
    largest = max(attack.grouped(every, len(every)), key=len)
    within = corpus.of_each_family(largest)
    others = {name: of for name, of in corpus.of_each_family(every).items() if name not in within}
    taken = [drawn.choice(within[name]) for name in drawn.sample(sorted(within), SHARED)]
    return taken + [drawn.choice(others[name]) for name in drawn.sample(sorted(others), FURTHER)]


@pytest.mark.sampled
@pytest.mark.timeout(1800)
def test_none_of_some_is_let_through(tmp_path: Path) -> None:
    outcomes = list(attack.attacked(_some(), tmp_path, instances=1))
    assert {one.name: one.through for one in outcomes if one.through} == {}
    assert {one.name: one.disposition for one in outcomes if one.unexpected} == {}
    held = [one.full_ns for one in outcomes if corpus.find(one.name).beside == "sleeps"]
    assert min(held, default=1e6) > 0.8e6  # a millisecond
