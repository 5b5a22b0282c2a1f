"""A rung's answer for a whole batch compared with that of a few rows: in some of its rows, drawn each time,
or in all.

A batch repeats a few different rows. Each of these is compared with float64 once in a check. Where the same
row occurs again, its answer must have the same bytes, or it is compared with float64 as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from bench.measure.answers.comparison import compare
from bench.measure.answers.samples import Sample, looked_at
from engine.rung_rows import same_bytes
from engine.rung_session import POISONS, RungSession
from kernels.ops import Params

LOOKED_NBYTES = 8 << 20  # of an answer that is compared where not all of it is,
FEWEST = 8  # and at least so many rows
PIECE_NBYTES = 16 << 20  # fetched at once where all of it is
INPUT_NBYTES = (
    64 << 20
)  # inputs beyond are looked at in stretches alone, to see that nothing was written there


@dataclass
class BatchCheck:
    """Of one sample, for any number of rungs."""

    params: Params
    sample: Sample
    precision: str
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def __post_init__(self) -> None:
        shape = self.params.output_rows
        dtype = np.dtype(self.params.out_dtype)
        self._itemsize = np.dtype(self.params.dtype).itemsize
        self._a_row = max(1, math.prod(shape[1:]) * dtype.itemsize)
        shapes = [s for i, s in enumerate(self.params.input_shapes) if self.params.has_rows(i)]
        self._elements = [math.prod(s) // max(1, shape[0]) for s in (shape, *shapes)]

    def somewhere(self, session: RungSession) -> str:
        """Why the session's answer is wrong, or "" if nothing that was looked at is: two passes on different
        poison, some rows of each, and what was written beside the output."""
        proved: dict[int, np.ndarray] = {}
        for byte in POISONS:
            self._pass(session, byte)
            if reason := self._wrong(session, self._some(), proved):
                return reason
        return _strays(session, whole=False)

    def everywhere(self, session: RungSession) -> str:
        """The same of every row of one pass, fetched piece by piece, and all that it was to leave alone (of
        large inputs stretches, as reading them back takes as long as the answer)."""
        proved: dict[int, np.ndarray] = {}
        self._pass(session, POISONS[0])
        for rows in self._pieces():
            if reason := self._wrong(session, rows, proved):
                return reason
        held = sum(math.prod(shape) for shape in self.params.input_shapes) * self._itemsize
        return _strays(session, whole=held <= INPUT_NBYTES)

    def _pass(self, session: RungSession, byte: int) -> None:
        session.poison(byte)
        session.run()
        session.synchronize()

    def _some(self) -> np.ndarray | None:
        if self.sample.rows is None:
            return None
        most = max(FEWEST, LOOKED_NBYTES // self._a_row)
        return looked_at(len(self.sample.rows), self._elements, most, self._random)

    def _pieces(self) -> Iterator[np.ndarray | None]:
        if self.sample.rows is None:
            yield None
            return
        count, step = len(self.sample.rows), max(1, PIECE_NBYTES // self._a_row)
        for start in range(0, count, step):
            yield np.arange(start, min(start + step, count))

    def _wrong(self, session: RungSession, rows: np.ndarray | None, proved: dict[int, np.ndarray]) -> str:
        """Why these rows of the last pass (None: all of it) are wrong, or "". proved: rows of the answer that
        were held against float64, by which of the sample's they are."""
        if rows is None:
            return compare(session.output(), self.sample, self.precision).stats.reason
        assert self.sample.rows is not None
        got, kinds = session.output(rows), self.sample.rows[rows].tolist()
        firsts = {kind: i for i, kind in reversed([*enumerate(kinds)]) if kind not in proved}
        if reason := self._off(got, rows, sorted(firsts.values())):
            return reason
        for kind, i in firsts.items():
            proved[kind] = got[i].copy()
        other = [i for i, kind in enumerate(kinds) if not same_bytes(got[i], proved[kind])]
        return self._off(got, rows, other)

    def _off(self, got: np.ndarray, rows: np.ndarray, places: list[int]) -> str:
        """What float64 says of some of the rows that were fetched."""
        if not places:
            return ""
        found = compare(got[places], self.sample.at(rows[places]), self.precision)
        if found.stats.ok or not found.index:
            return found.stats.reason
        there = (int(rows[places[found.index[0]]]), *found.index[1:])
        return found.stats.reason.replace(f"element {found.index}", f"element {there}")


def _strays(session: RungSession, whole: bool) -> str:
    strays = session.strays(whole)
    return strays[0].words if strays else ""
