"""A sitting: what the page of speed needs of goals that were measured on one processor, in one small file.

The runs themselves have every sample and are a hundred times as large. What is kept here is derived from them
as everywhere (bench.results.rows), so that the page can be made again when the runs are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bench.extras.reports.figures import row_of
from bench.extras.reports.filled import RAN_BESIDE
from bench.extras.reports.goals import again, judged, machines, tables
from bench.extras.reports.goals.presets import Goals
from bench.extras.reports.needs import Taken
from bench.results import doubt
from bench.results.records import Measurement, Record
from bench.results.rows import Row, derive, title
from bench.results.store import read_file, write_atomically
from bench.run.kinds.comparison import RunFolder
from bench.views.sentences import footer
from bench.words import units
from kernels.errors import InputError

SCHEMA = 1
FILE = "sitting.json"  # what docs/formats.json calls it; the user names the file


class Rival(Record, frozen=True):
    """A rival at the same batch size. ns: its time of a batch; ratio, low, high: that over ours (above 1 ours
    is faster), with its 95 % interval (None: not kept); doubts: what speaks against the ratio, in short."""

    name: str
    ns: float
    ratio: float
    low: float | None = None
    high: float | None = None
    doubts: str = ""

    def __post_init__(self) -> None:
        if not (self.ns > 0 and self.ratio > 0):
            raise ValueError(f"{self.name}: times and ratios are larger than 0")


class SittingCase(Record, frozen=True):
    """One of ours. flowing: from images on the host to answers there, else a forward pass alone; ns: of a
    batch, None where there is no time, and reason says why; error: of the layer nearest to its bound, in
    words; doubts: what speaks against the time, in short."""

    model: str
    precision: str
    batch: int
    flowing: bool = False
    ns: float | None = None
    low: float | None = None
    high: float | None = None
    doubts: str = ""
    error: str = ""
    reason: str = ""
    beside: tuple[Rival, ...] = ()


class GoalCount(Record, frozen=True):
    """How many goals came to what; doubtful: by a figure that is to be doubted."""

    outcome: str
    count: int
    doubtful: bool = False


class Sitting(Record, frozen=True):
    """goals: the set's name; processor: what was measured; machines, versions: each host, with its software;
    rivals: their versions; first, last: the days; source: whose records, or where the figures were taken
    from; again: how near a second run was; outcomes: of all goals."""

    processor: str
    goals: str
    device: str
    first: str
    last: str
    schema: int = SCHEMA
    created_at: str = ""
    machines: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    source: str = ""
    commands: tuple[str, ...] = ()
    again: str = ""
    outcomes: tuple[GoalCount, ...] = ()
    cases: tuple[SittingCase, ...] = ()


def check_name(out: Path) -> None:
    """Raises InputError where it is no name of such a file."""
    if out.suffix.lower() != ".json":
        raise InputError(f"{out} is no file to keep figures in; one ends in .json")


def write(sitting: Sitting, out: Path) -> None:
    """A line a case, so that two sittings can be compared by eye. Raises InputError where it cannot be
    written, or is no name of such a file."""
    check_name(out)
    encode = msgspec.json.encode
    text = msgspec.json.format(encode(replace(sitting, cases=())), indent=1)
    cases = b",\n".join(b"  " + encode(case) for case in sitting.cases)
    write_atomically(out, text.removesuffix(b"\n}") + b',\n "cases": [\n' + cases + b"\n ]\n}\n")


def read(given: Sequence[Path]) -> list[Sitting]:
    """Those of files and folders. Raises InputError where there are none, and for what is none."""
    files = [file for path in given for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not files:
        where = f"in {', '.join(map(str, given))}" if given else "named"
        raise InputError(
            f"no sitting is {where}: `report goals NAME --keep FILE.json` keeps one, of goals that were "
            "measured"
        )
    try:
        return [read_file(file, Sitting, SCHEMA) for file in files]
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error


def kept(goals: Goals, taken: Taken) -> Sitting:
    """What is kept of goals that were measured. Raises InputError where nothing was, or where the runs are of
    several processors."""
    folders = list(taken.runs[0].values())
    found = [folder for folder in folders if folder.measurements()]
    if not found:
        raise InputError(f"nothing of {goals.name} was measured here, so there is nothing to keep")
    processors = list(dict.fromkeys(_processor(folder, goals.device) for folder in found))
    if len(processors) > 1:
        raise InputError(
            f"these runs are of {' and '.join(processors)}; keep those of each by itself (--run, --folder)"
        )
    headers = [folder.header for folder in found]
    days = sorted(header.created_at[:10] for header in headers)
    measurements = [made for folder in found for made in folder.measurements()]
    held = judged.held(goals, taken)
    repeated = again.repeated(taken)
    outcomes: dict[tuple[str, bool], int] = {}
    for one in held:
        key = one.outcome, bool(one.doubts)
        outcomes[key] = outcomes.get(key, 0) + 1
    return Sitting(
        processor=processors[0],
        goals=goals.name,
        device=goals.device,
        first=days[0],
        last=days[-1],
        created_at=headers[-1].created_at,
        machines=tuple(dict.fromkeys(map(footer.machine, headers))),
        versions=tuple(dict.fromkeys(map(footer.versions, headers))),
        rivals=tuple(sorted(footer.rivals(measurements, RAN_BESIDE))),
        source=f"the records of {units.count(len(found), 'run')}",
        commands=(f"report goals {goals.name}",),
        again=again.sentence(repeated),
        outcomes=tuple(
            GoalCount(outcome=outcome, count=outcomes[outcome, doubtful], doubtful=doubtful)
            for outcome in judged.OUTCOMES
            for doubtful in (False, True)
            if (outcome, doubtful) in outcomes
        ),
        cases=tuple(_cases(goals, found)),
    )


def _processor(folder: RunFolder, device: str) -> str:
    environment = folder.header.environment
    if device == "cuda":
        return environment.gpu or machines.UNKNOWN
    cores = f", {units.count(environment.cores, 'core')}" if environment.cores else ""
    return f"{environment.cpu}{cores}" if environment.cpu else machines.UNKNOWN


def _cases(goals: Goals, folders: Iterable[RunFolder]) -> Iterator[SittingCase]:
    """Each of ours once, of the run that has most rivals beside it; the later of two alike."""
    found: dict[tuple[str, str, int, bool], SittingCase] = {}
    for folder in folders:
        measurements = folder.measurements()
        for made in measurements:
            if made.case.backend != f"engine-{goals.device}":
                continue
            flowing = made.end_to_end is not None and not made.end_to_end.refused
            case = _case(made, measurements, flowing)
            key = case.model, case.precision, case.batch, flowing
            if key not in found or len(case.beside) >= len(found[key].beside):
                found[key] = case
    yield from found.values()


def _case(made: Measurement, measurements: Sequence[Measurement], flowing: bool) -> SittingCase:
    of = made.case
    at = title(of.model), of.backend, of.precision, of.batch
    own = row_of(measurements, *at)
    assert own is not None
    names = dict.fromkeys(
        other.case.backend for other in measurements if title(other.case.model) == title(of.model)
    )
    # Of a tuned reference the configuration that stays within the bound stands for it.
    strict = {
        name.removesuffix(tables.STRICT) + tables.LENIENT for name in names if name.endswith(tables.STRICT)
    }
    others = [row_of(measurements, *at, name) for name in names if name != of.backend and name not in strict]
    beside = (_beside(row, flowing) for row in others if row is not None and row.against is not None)
    ran = made.disposition == "ok" and own.median_ns is not None
    flow = own.end_to_end if flowing else None
    timed = (flow.ns, flow.low_ns, flow.high_ns) if flow else (own.median_ns, own.low_ns, own.high_ns)
    return SittingCase(
        model=title(of.model),
        precision=of.precision,
        batch=of.batch,
        flowing=flowing,
        ns=timed[0] if ran else None,
        low=timed[1] if ran else None,
        high=timed[2] if ran else None,
        doubts=doubt.in_short(flow.doubts if flow else own.own_doubts),
        error=tables.error_words(made) if ran else "",
        reason="" if ran else (made.reason or made.disposition.replace("_", " ")),
        beside=tuple(one for one in beside if one is not None) if ran else (),
    )


def _beside(row: Row, flowing: bool) -> Rival | None:
    """None where not both were measured so."""
    assert row.against is not None
    if not flowing:
        if row.speedup is None or row.against.case.backend == row.case.backend:
            return None
        theirs = derive(row.against, None).median_ns
        if theirs is None:
            return None
        ends = (row.speedup_low, row.speedup_high)
        return _told(row.against.case.backend, theirs, row.speedup, ends, row.speedup_doubts)
    flow = row.end_to_end
    if flow is None or flow.speedup is None:
        return None
    ends = (flow.speedup_low, flow.speedup_high)
    return _told(row.against.case.backend, flow.ns * flow.speedup, flow.speedup, ends, flow.speedup_doubts)


def _told(
    name: str, ns: float, ratio: float, ends: tuple[float | None, float | None], doubts: Sequence[str]
) -> Rival:
    return Rival(name=name, ns=ns, ratio=ratio, low=ends[0], high=ends[1], doubts=doubt.in_short(doubts))
