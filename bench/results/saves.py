"""The log of saves: what each saved version of a user's rung came to, and what it gained or lost over the
last right one. It lies in the folder of the kernels, so that tries that did not pay are kept, with their
source. A ladder's folder has the same file, with the versions that were measured in it.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from bench.results import reading, stats
from bench.results.ladder_records import Ladder, RungCase, RungMeasurement
from bench.results.ladder_rows import rows
from bench.results.records import Disposition, Record
from bench.results.stats import SAME_BOUND
from bench.results.store import SAVES_FILE, write_atomically
from bench.words import orders
from kernels.errors import InputError, system_words

FILE = SAVES_FILE
MOST_SOURCE = 100_000  # characters of a version that are kept
SCHEMA = 1


class Save(Record, frozen=True):
    """One saved version of a rung. what: the work it was timed on; time_s with its interval (None: it was not
    timed); gain: the last right version's time over this one's (None: there was none, or nothing to
    compare). counts: what its compiler says of it, as RungMeasurement.compiled. source: its text as it
    was."""

    at: str
    rung: str
    what: str
    device: str
    disposition: Disposition
    reason: str = ""
    time_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    counts: dict[str, float] = msgspec.field(default_factory=dict)
    source: str = ""
    schema: int = SCHEMA

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if self.disposition != "ok":
            return self.disposition.replace("_", " ")
        if self.gain is None:
            return "first"
        if self.gain_low is None or self.gain_high is None:
            return orders.NOT_DECIDED
        if self.gain_low > 1 + SAME_BOUND:
            return "gained"
        if self.gain_high < 1 / (1 + SAME_BOUND):
            return "lost"
        within = self.gain_low >= 1 / (1 + SAME_BOUND) and self.gain_high <= 1 + SAME_BOUND
        return "same" if within else orders.NOT_DECIDED


class SaveLog:
    """A log that grows while files are saved. The last right version of each rung is what the next is held
    against; it is known from `begin` on."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._right: dict[str, RungMeasurement] = {}

    def begin(self, known: Mapping[str, RungMeasurement]) -> None:
        """What there was before the first save."""
        self._keep(known.values())

    def note(
        self,
        ladder: Ladder,
        saved: Sequence[RungCase],
        known: Mapping[str, RungMeasurement],
        sources: Mapping[str, str],
    ) -> list[Save]:
        """Append what these rungs of the user came to. Raises InputError where it cannot be written."""
        measured = [known[case.key] for case in saved if case.user and case.key in known]
        made = [self._save(ladder, m, sources.get(m.case.rung, "")) for m in measured]
        self._keep(measured)
        if made:
            try:
                with self.path.open("ab") as file:
                    for save in made:
                        file.write(msgspec.json.encode(save) + b"\n")
            except OSError as error:
                raise InputError(
                    f"cannot write the log of saves {self.path}: {system_words(error)}"
                ) from error
        return made

    def _save(self, ladder: Ladder, m: RungMeasurement, source: str) -> Save:
        (row,) = rows(ladder, [m])
        time, before = row.time, self._right.get(m.case.key)
        gain = stats.ratio_of(before, m) if before is not None and time is not None else None
        return Save(
            at=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            rung=m.case.rung,
            what=ladder.job.title,
            device=ladder.job.device,
            disposition=m.disposition,
            reason=m.reason or (m.finding.reason if m.finding else ""),
            time_s=time.value * 1e-9 if time else None,
            low_s=time.low * 1e-9 if time and time.known else None,
            high_s=time.high * 1e-9 if time and time.known else None,
            gain=gain.value if gain else None,
            gain_low=gain.low if gain and gain.known else None,
            gain_high=gain.high if gain and gain.known else None,
            counts=dict(m.compiled),
            source=source[:MOST_SOURCE],
        )

    def _keep(self, measured: Iterable[RungMeasurement]) -> None:
        for m in measured:
            if m.case.user and m.disposition == "ok" and m.samples_ns:
                self._right[m.case.key] = m


def keep(
    folder: Path, ladder: Ladder, measurements: Iterable[RungMeasurement], sources: Mapping[str, str]
) -> None:
    """Keep in a ladder's folder the source of each rung of the user that was measured; of one that was
    measured before and is none of these, what is known stays. sources: by rung. Raises InputError where it
    cannot be written."""
    own = {m.case.key: m for m in measurements if m.case.user and m.case.scope == "rung"}
    if own:
        rungs = {m.case.rung for m in own.values()}
        kept: list[Save] = []
        with contextlib.suppress(InputError):  # of a file that is none, nothing is known
            kept = [save for save in read(folder) if save.rung not in rungs]
        write_atomically(folder / FILE, b"".join(msgspec.json.encode(save) + b"\n" for save in kept))
        SaveLog(folder).note(ladder, [m.case for m in own.values()], own, sources)


def read(folder: Path) -> list[Save]:
    """The saves of a folder of kernels, or of a ladder's, oldest first; a line that was cut off is left out.
    [] before the first one. Raises InputError where there is no such folder, or its log cannot be read."""
    path = Path(folder) / FILE
    decoder = msgspec.json.Decoder(Save)
    found = []
    try:
        with path.open("rb") as file:
            for _, line in reading.lines(file):
                if line:
                    found.append(reading.decoded(line, decoder))
    except FileNotFoundError as error:
        if not Path(folder).is_dir():
            raise InputError(f"there is no folder {folder}; --saves takes a folder of kernels") from error
    except OSError as error:
        raise InputError(f"the log of saves {path} cannot be read ({system_words(error)})") from error
    except reading.Unreadable as error:
        raise InputError(f"{path} is no log of saves: {error}") from error
    return found
