"""Were the timed passes right? Some of them, chosen afterwards, are repeated and compared.

Each pass had inputs of its own (engine.stirring), and its output was kept. The output has to be what the same
inputs give when nobody measures, and that has to be what float64 gives. A kernel that answers from memory,
works outside of the timed part, or knows when it is timed fails one of the two.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.measure.answers import accuracy
from bench.measure.outcomes import Incorrect
from bench.results.records import ErrorStats
from engine.rung_rows import same_bytes
from engine.stirring import Stirring, Witness, Witnessed

# Timed passes: drawn ones, and the first that was kept, before which nothing of its answer was there. Of what
# a user wrote, as many more as there is time for: of most kernels, a pass of each train.
LOOKED_AT, LOOKS_S = 4, 0.02
SELDOM = 3  # times as seldom is a pass drawn that is of a warm-up
# Of passes that are kept for a later look: so many, of so many bytes in all.
KEPT, KEPT_NBYTES = 256, 64 << 20
# Who answers from memory gives the same to the same inputs when nobody measures: float64 is asked of as many
# as this many seconds have time for, of one at least.
FLOAT64_S = 0.05

Arrays = Mapping[str, np.ndarray]
Seen = tuple[Stirring, Witness]
WHEN = "during timing"


@dataclass(frozen=True)
class Off:
    """Values that a timed pass left, and that are wrong: the worst, and where it lies in the answer."""

    stats: ErrorStats
    place: int
    got: float
    expected: float


OwnLook = Callable[[np.ndarray, np.ndarray, np.ndarray], Off | None]
"""(places, the values left there, the answer of an untimed pass) → what is wrong with them."""


@dataclass(frozen=True)
class PassCheck:
    """A timed pass compared with an untimed one over the same inputs. wrong: the first output that differs,
    with what was found; place, got, expected: of its worst element."""

    inputs: Arrays
    answers: Arrays
    wrong: str = ""
    stats: ErrorStats | None = None
    place: int = 0
    got: float = 0.0
    expected: float = 0.0

    @property
    def unwritten(self) -> bool:
        """Whether some of the poison was left: what was timed wrote not all of it."""
        return bool(self.wrong) and bool(np.isnan(self.got)) and not np.isnan(self.expected)

    @property
    def words(self) -> str:
        if np.isnan(self.expected) and not np.isnan(self.got):
            return (
                f"a pass over inputs that were timed before never wrote all of {self.wrong}: what was there "
                "before it is left (NaN), where the timed pass gave a number"
            )
        why = "it never wrote all of it" if self.unwritten else self.stats.reason if self.stats else ""
        return f"a timed pass left in {self.wrong} what its inputs do not give: {why}"


@dataclass(frozen=True)
class RowPart:
    """Of large outputs: the rows that are looked at, in order, and how many values one has."""

    rows: np.ndarray
    size: int

    def among(self, places: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of flat places and what was found there those in these rows: both, and where they lie among the
        values of these rows alone."""
        row, inside = np.divmod(places, self.size)
        held = np.isin(row, self.rows)
        return places[held], found[held], np.searchsorted(self.rows, row[held]) * self.size + inside[held]


def seen(session: Witnessed) -> list[Seen]:
    """The passes that were timed since the last call, each with what its inputs can be rebuilt from."""
    stirring, witnesses = session.stirring, session.witnesses()
    return [] if stirring is None else [(stirring, witness) for witness in witnesses]


def thinned(kept: list[Seen]) -> list[Seen]:
    """As many of these as are kept, drawn alike."""
    left = sum(map(_nbytes, kept))
    while len(kept) > 1 and (len(kept) > KEPT or left > KEPT_NBYTES):
        left -= _nbytes(kept.pop(secrets.randbelow(len(kept))))
    return kept


def _nbytes(one: Seen) -> int:
    return sum(values.nbytes for _, values in one[1].outputs.values())


def looks(
    witnessed: Sequence[Seen],
    again: Callable[[Arrays], Arrays],
    precision: str,
    factor: float = 1.0,
    part: RowPart | None = None,
    most: int = LOOKED_AT,
    typical: float = 0.0,
    seconds: float = 0.0,
    own: OwnLook | None = None,
) -> Iterator[PassCheck]:
    """Compares some of the passes that were seen. again: an untimed pass of the session over these inputs,
    its outputs by name. precision, factor: the bound; typical: as in accuracy.error_stats. part: the rows
    that `again` gives, if not all. most: how many passes are compared, and more of them for so many seconds
    in all. own: how values that were left are compared, if not each with the one in its place."""
    first, rest = (witnessed[:1], witnessed[1:]) if most > 1 else ((), witnessed)
    random = secrets.SystemRandom()
    drawn = sorted(rest, key=lambda one: random.expovariate(1 / SELDOM if one[1].rough else 1.0))
    drawn[most - len(first) : most - len(first)] = first
    end = time.perf_counter() + seconds
    for number, (stirring, witness) in enumerate(drawn):
        if number >= most and time.perf_counter() > end:
            break
        inputs = stirring.inputs_of(witness.number)
        answers = again(inputs)
        if own is not None:
            yield _own_look(inputs, answers, witness.outputs, own)
        else:
            yield _look(inputs, answers, witness.outputs, precision, factor, part, typical)


def _look(
    inputs: Arrays,
    answers: Arrays,
    left: Mapping[str, tuple[np.ndarray, np.ndarray]],
    precision: str,
    factor: float,
    part: RowPart | None,
    typical: float,
) -> PassCheck:
    for name, (places, found) in left.items():
        lying = places
        if part is not None:
            places, found, lying = part.among(places, found)
        right = np.asarray(answers[name]).reshape(-1)[lying]
        if found.dtype == right.dtype and same_bytes(found, right):
            continue
        exact = found.dtype.kind in "iub"
        values = found.astype(np.float64 if exact else np.float32)  # as answers are fetched
        expected = right.astype(np.float64)
        stats = accuracy.judged(values, expected, precision, factor, typical=typical)
        if not stats.ok:
            off = np.abs(values - expected)
            worst = int(np.where(np.isfinite(off), off, np.inf).argmax())
            at = int(places[worst])
            return PassCheck(inputs, answers, name, stats, at, float(values[worst]), float(expected[worst]))
    return PassCheck(inputs, answers)


def _own_look(
    inputs: Arrays, answers: Arrays, left: Mapping[str, tuple[np.ndarray, np.ndarray]], own: OwnLook
) -> PassCheck:
    for name, (places, found) in left.items():
        if (off := own(places, found, np.asarray(answers[name]))) is not None:
            return PassCheck(inputs, answers, name, off.stats, off.place, off.got, off.expected)
    return PassCheck(inputs, answers)


def check(
    session: Witnessed,
    again: Callable[[Arrays], Arrays],
    right: Callable[[Arrays, Arrays], ErrorStats | None],
    precision: str,
    factor: float = 1.0,
    most: int = LOOKED_AT,
    before: Sequence[Seen] = (),
    seconds: float = 0.0,
) -> ErrorStats | None:
    """Raises Incorrect where a timed pass was wrong; as `looks`. before: what was seen earlier; right:
    inputs and outputs of one pass against float64, as far as it is worth it; None where there is nothing to
    hold it against."""
    found: ErrorStats | None = None
    spent = 0.0
    for look in looks([*before, *seen(session)], again, precision, factor, most=most, seconds=seconds):
        if look.wrong:
            raise Incorrect(look.stats, WHEN, look.words)
        if found is None or spent < FLOAT64_S:
            started = time.perf_counter()
            found = right(look.inputs, look.answers) or found
            spent += time.perf_counter() - started
            if found is not None and not found.ok:
                raise Incorrect(found, f"{WHEN}, on inputs that were timed")
    return found
