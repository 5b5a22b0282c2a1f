"""Rows one at a time, for a table that grows while somebody watches: nothing is derived twice.

`bench.results.rows.rows` derives all rows at once, which takes milliseconds for each; a window cannot wait
for that whenever a measurement comes. Here each row is derived once, and once more if its reference comes
later.
"""

from __future__ import annotations

from bench.results.records import Case, Measurement
from bench.results.rows import SOUND, Row, derive, reference_of


class RowCache:
    """`add` measurements, call `step` until it returns False (or there is no time left), read `rows`."""

    def __init__(self) -> None:
        self._measurements: dict[str, Measurement] = {}
        self._sound: dict[Case, Measurement] = {}
        self._rows: dict[str, Row] = {}
        self._queue: dict[str, None] = {}
        self._waiting: dict[tuple[str, str, int, int], set[str]] = {}  # keys by what a reference must match

    @property
    def pending(self) -> int:
        """How many rows are still to be derived."""
        return len(self._queue)

    def add(self, measurement: Measurement) -> None:
        """Take a measurement; one of the same case is replaced and moves to the end."""
        case = measurement.case
        for table in (self._measurements, self._rows, self._queue):
            table.pop(case.key, None)
        self._measurements[case.key] = measurement
        self._queue[case.key] = None
        if measurement.disposition in SOUND and measurement.samples_ns:
            self._sound[case] = measurement
        else:
            self._sound.pop(case, None)
        if measurement.reference not in ("", case.backend):
            self._waiting.setdefault(self._place(case, measurement.reference), set()).add(case.key)
        for key in self._waiting.get(self._place(case, case.backend), ()):
            if key in self._measurements:
                self._queue[key] = None

    def step(self) -> bool:
        """Derive one row; False where there is none to derive."""
        if not self._queue:
            return False
        key = next(iter(self._queue))
        del self._queue[key]
        measurement = self._measurements[key]
        self._rows[key] = derive(measurement, reference_of(measurement, self._sound))
        return True

    def rows(self) -> list[Row]:
        """The rows derived so far, in the order of their measurements."""
        return [self._rows[key] for key in self._measurements if key in self._rows]

    def row(self, case: Case) -> Row | None:
        return self._rows.get(case.key)

    @staticmethod
    def _place(case: Case, backend: str) -> tuple[str, str, int, int]:
        return case.model, backend, case.batch, case.images
