"""What the judge says of planted mistakes is true, and mostly names them. Each run tries some of each
operator; `python -m tests.bench.judge.mistakes` tries all."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from bench.judge import tried_shape
from bench.judge.mistakes import mistakes as mistakes_of
from bench.judge.mistakes import of_any
from bench.measure.answers import samples
from bench.measure.answers.samples import draw
from kernels import registry
from kernels.ops import OPS
from tests import sampling
from tests.bench.judge import mistakes, planting
from tests.bench.judge.planting import TIMED

pytestmark = pytest.mark.slow

NAMED = 0.9


def test_nine_of_ten_planted_mistakes_have_a_name() -> None:
    every = planting.ALL.values()
    assert len(every) >= 80
    assert sum(bool(mistake.says) for mistake in every) >= NAMED * len(every)


@pytest.mark.sampled
@pytest.mark.timeout(900)  # all of them
def test_no_planted_mistake_is_missed_or_misnamed_and_all_that_have_a_name_are_named() -> None:
    """Each in one sentence. What nobody could name is placed: how many shapes, by how much, how many
    elements, and which is the first."""
    kinds: dict[str, list[planting.Planted]] = defaultdict(list)
    for mistake in planting.ALL.values():
        kinds[mistake.op if mistake.says else "no name"].append(mistake)
    taken = [
        one for kind, of in kinds.items() for one in sampling.some(f"mistakes {kind}", of, -(-len(of) // 24))
    ]
    found = list(mistakes.table(taken))
    assert {mistake.op for mistake, _, _ in found} == set(OPS)
    right = {True: "true", False: "none"}
    assert [(m.name, finding, word) for m, finding, word in found if word != right[bool(m.says)]] == []
    nameless = 0
    for mistake, finding, word in found:
        assert finding is not None
        reason = finding.reason
        assert "\n" not in reason
        assert ". " not in reason
        assert not reason.endswith((".", ";", " "))
        assert len(reason) < 400, reason
        if word == "none":
            nameless += 1
            assert not mistake.says, mistake.name
            assert " shapes tried" in reason
            # Whole numbers are right or wrong; how far off they are says nothing.
            fractions = np.dtype(mistake.params.out_dtype).kind == "f"
            assert (", by a relative L2 error of up to " in reason) == fractions, reason
            assert " elements are wrong, first (" in reason
            assert finding.index
    assert nameless


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", OPS)
def test_no_mistake_explains_a_right_answer(op: str) -> None:
    """Nearly every mistake gives another answer than the right one on some shape that is tried."""
    random = np.random.default_rng(1)
    rung = registry.find("cpu", op, 1)
    told: set[str] = set()
    every: set[str] = set()
    for shape in samples.small_shapes(rung, TIMED[op]):
        sample = draw(shape.params, random)
        case = tried_shape.case(shape.params, sample, None, "fp32")
        for fault, words, answer in case.mistakes():
            every.add(words)
            with np.errstate(all="ignore"):
                if case.differs(np.asarray(answer(), np.float64).reshape(case.expected.shape), fault).any():
                    told.add(words)
    assert len(every) > 5
    # Those that come to the same here: there is nothing of the kind in any of the shapes.
    assert len(every - told) <= len(every) / 4, sorted(every - told)


def test_a_mistake_on_one_shape_alone_is_not_said_of_all(tmp_path: Path) -> None:
    """The bias left out of batches alone: said of where it is wrong, not of every shape with a bias."""
    finding = mistakes.found(planting.APART["conv: bias left out of batches"], tmp_path)
    assert finding is not None
    assert finding.reason.startswith("where it is wrong, the bias is missing;")


def test_two_mistakes_at_once_are_not_told_as_one(tmp_path: Path) -> None:
    """Images of one batch get a sign, others lose their bias: neither explains all, and neither is told."""
    finding = mistakes.found(planting.APART["conv: two at once"], tmp_path)
    assert finding is not None
    assert finding.fault in mistakes.NAMELESS, finding.reason


def test_every_operator_has_its_mistakes() -> None:
    random = np.random.default_rng(2)
    for op, p in TIMED.items():
        sample = draw(p, random)
        assert len(list(mistakes_of(p, *sample.inputs))) >= 3, op
        assert list(of_any(p, sample.inputs, sample.expected))
