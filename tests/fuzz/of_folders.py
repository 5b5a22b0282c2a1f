"""Changed runs, ladders and profiles: read, listed, shown, copied, thinned, reported, drawn."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.charts import charts
from bench.charts.definitions import Chart
from bench.charts.footer import footer
from bench.comparison import report
from bench.comparison.kind import KIND as COMPARISON
from bench.kinds import folders as bench_folders
from bench.kinds import summaries, thin
from bench.kinds.folders import open_folder
from bench.ladder.kind import KIND as LADDER
from bench.ladder.show import charts as ladder_charts
from bench.ladder.show import report as ladder_report
from bench.ladder.show import rows as ladder_rows
from bench.ladder.show import tables as ladder_tables
from bench.profile.event_files import events_in
from bench.profile.kind import KIND as PROFILE
from bench.profile.show import charts as profile_charts
from bench.profile.show import remarks as profile_remarks
from bench.profile.show import report as profile_report
from bench.profile.show.saved import ShownProfile, tables_of
from bench.results import store
from bench.results.rows import rows
from bench.show import draw_together, tables, terminal_tables
from bench.show import table as shown_table
from bench.show.table import to_csv, to_json, to_markdown
from tests.bench.kinds import test_folders
from tests.fuzz import changes
from tests.fuzz.ours import ours

_LINES = 50  # changed lines a results file

_RECORDS = {"run": COMPARISON.file, "ladder": LADDER.file, "profile": PROFILE.file}


@cache
def honest(kind: str, folder: Path) -> dict[str, bytes]:
    """The files of an honest folder, by their names in it."""
    made = folder / f"honest-{kind}"
    shutil.rmtree(made, ignore_errors=True)
    test_folders.KINDS[kind](made)
    return {str(p.relative_to(made)): p.read_bytes() for p in sorted(made.rglob("*")) if p.is_file()}


@cache
def planted(kind: str, folder: Path) -> Path:
    """An honest folder, in which one file is overwritten at a time."""
    path = folder / kind
    for name, data in honest(kind, folder).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


@cache
def _lines(kind: str, folder: Path) -> tuple[str, ...]:
    every = honest(kind, folder)[store.RESULTS_FILE].decode().splitlines()
    return tuple(json.dumps(_short(decoded(line))) for line in every)


def _short(record: Any) -> Any:
    """A record with some of its samples: of thousands that are alike each takes its time."""
    if isinstance(record, dict):
        return {key: _short(value) for key, value in record.items() if key != "sum"}
    return [_short(value) for value in record[:12]] if isinstance(record, list) else record


@contextlib.contextmanager
def replaced(path: Path, data: bytes) -> Iterator[None]:
    held = path.read_bytes()
    path.write_bytes(data)
    try:
        yield
    finally:
        path.write_bytes(held)


def lines(folder: Path, drawn: random.Random) -> int:
    """Lines of results of any kind, changed and mostly with the checksum that goes with the change, read."""
    kind = drawn.choice(list(_RECORDS))
    path = planted(kind, folder)
    made = b"".join(_line(drawn.choice(_lines(kind, folder)), drawn) for _ in range(_LINES))
    with replaced(path / store.RESULTS_FILE, made), ours():
        open_folder(path).measurements()
        summaries.summary(path)
    return _LINES


def _line(line: str, drawn: random.Random) -> bytes:
    if drawn.random() < 0.1:
        return changes.turned(line.encode(), drawn, len(line)) + b"\n"
    data = changes.written(changes.changed(decoded(line), drawn), drawn)
    return _with_sum(data) if drawn.random() < 0.7 else data + b"\n"


def decoded(line: str | bytes) -> Any:
    return json.loads(line)


def records(folder: Path, drawn: random.Random) -> int:
    """run.json, ladder.json and profile.json, changed, opened and listed."""
    kind = drawn.choice(list(_RECORDS))
    path = planted(kind, folder)
    record = decoded(honest(kind, folder)[_RECORDS[kind]])
    data = changes.written(changes.changed(record, drawn), drawn)
    with replaced(path / _RECORDS[kind], data):
        with ours():
            open_folder(path).measurements()
        summaries.summaries(path.parent)
    return 1


def shown(folder: Path, drawn: random.Random) -> int:
    """A folder with changed lines or a changed record, in every table and chart that there is of it."""
    kind = drawn.choice(list(_RECORDS))
    with _changed_folder(kind, folder, drawn) as (path, count), ours():
        _SHOW[kind](path)
    return count


def written(folder: Path, drawn: random.Random) -> int:
    """The same, copied, made small, reported; and one of its charts drawn."""
    kind, target = drawn.choice(list(_RECORDS)), folder / "written"
    ways: dict[str, Callable[[Path], Any]] = {
        "copy": lambda path: bench_folders.copy(path, target),
        "thin": lambda path: thin.thin(path, target),
        "report": lambda path: _report(kind, path, target),
        "chart": lambda path: _draw(_SHOW[kind](path), target, drawn),
    }
    way = drawn.choice(list(ways))
    try:
        with _changed_folder(kind, folder, drawn) as (path, count), ours():
            ways[way](path)
    finally:
        shutil.rmtree(target, ignore_errors=True)
    return count


def _report(kind: str, path: Path, target: Path) -> None:
    """Without its pictures, which are drawn one by one."""
    drawn = {
        "run": (report, "charts_of"),
        "ladder": (ladder_report, "_draw"),
        "profile": (profile_report, "_draw"),
    }
    module, name = drawn[kind]
    with patch.object(module, name, lambda *_: []):
        module.write([path], target / "report.md")  # type: ignore[attr-defined]  # each has one


def _draw(made: Sequence[Chart], target: Path, drawn: random.Random) -> None:
    if made:
        draw_together.write([drawn.choice(made)], target, ["svg"])


@contextlib.contextmanager
def _changed_folder(kind: str, folder: Path, drawn: random.Random) -> Iterator[tuple[Path, int]]:
    """A folder in which a record or lines are changed, and how many."""
    path = planted(kind, folder)
    if drawn.random() < 0.3:
        name, count = _RECORDS[kind], 1
        data = json.dumps(changes.changed(decoded(honest(kind, folder)[name]), drawn)).encode()
    else:
        name = store.RESULTS_FILE
        every = _lines(kind, folder)
        made = [_summed(line, drawn) if drawn.random() < 0.3 else line.encode() + b"\n" for line in every]
        data, count = b"".join(made), len(every)
    with replaced(path / name, data):
        yield path, count


def _summed(line: str, drawn: random.Random) -> bytes:
    """A changed line whose checksum fits."""
    return _with_sum(json.dumps(changes.changed(decoded(line), drawn)).encode())


def _with_sum(data: bytes) -> bytes:
    if data.endswith(b"}") and len(data) > 2:
        data = data[:-1] + b',"sum":"%08x"}' % zlib.crc32(data)
    return data + b"\n"


def _show_run(path: Path) -> list[Chart]:
    folder = COMPARISON.open(path)
    measurements = folder.measurements()
    made = rows(measurements)
    to_csv(tables.table(made))
    to_csv(tables.layer_table(measurements))
    to_json(shown_table.records(tables.table(made)))
    to_markdown(tables.table(made), by_name=True)
    _printed(terminal_tables.terminal(made))
    _printed(terminal_tables.layers(measurements))
    footer([folder.header], measurements)
    return charts([(folder.header, measurements)]) if measurements else []


def _show_ladder(path: Path) -> list[Chart]:
    folder = LADDER.open(path)
    measurements = folder.measurements()
    rungs = ladder_rows.rows(folder.header, measurements)
    whole = ladder_rows.rows(folder.header, measurements, "model")
    to_csv(ladder_tables.table([*rungs, *whole]))
    ladder_tables.as_json(folder.header, rungs, whole)
    to_markdown(ladder_tables.table([*rungs, *whole]), by_name=True)
    _printed(ladder_tables.terminal(folder.header, rungs, whole))
    ladder_charts.footer(folder.header)
    return ladder_charts.charts(folder.header, rungs)


def _show_profile(path: Path) -> list[Chart]:
    folder = PROFILE.open(path)
    measurements = folder.measurements()
    for table in tables_of(folder, measurements, ShownProfile()):
        to_csv(table)
    fine = [made for made in measurements if made.disposition == "ok"]
    for made in measurements:
        profile_remarks.remarks(made)
    return profile_charts.charts(folder.header, fine, partial(events_in, folder.path)) if fine else []


def _printed(shown: Any) -> None:
    from rich.console import Console

    Console(file=io.StringIO(), width=120).print(shown)


_SHOW = {"run": _show_run, "ladder": _show_ladder, "profile": _show_profile}
