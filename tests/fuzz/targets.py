"""What is fuzzed: a folder of honest files a target, one of which is changed, and everything that the program
does with such a file when it is given one. Whatever comes of it but an error of ours is a finding."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import random
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx

from bench import draw, folders, gallery, npz, predictions, reading, report, store, summaries, tables, thin
from bench.charts import charts
from bench.charts import ladder as ladder_charts
from bench.charts import profile as profile_charts
from bench.charts.definitions import Chart
from bench.charts.footer import footer
from bench.commands.profile import Shown, tables_of
from bench.folders import open_folder
from bench.ladder import report as ladder_report
from bench.ladder import rows as ladder_rows
from bench.ladder import tables as ladder_tables
from bench.ladder.store import LadderFolder
from bench.profile import remarks as profile_remarks
from bench.profile import report as profile_report
from bench.profile.output import to_csv
from bench.profile.store import ProfileFolder
from bench.rows import in_order, rows
from bench.store import RunFolder
from engine.groups import groups
from engine.importer import load
from engine.planner import plan
from kernels.errors import KernelscopeError
from tests.backends.nets import small_net
from tests.bench import test_folders
from tests.engine.harness import make_model
from tests.engine.test_bad_models import RELU, nested, twice, with_functions
from tests.fuzz import changes
from tests.fuzz.nets import SHAPED, SMALL_CONSTANTS

logging.getLogger("kernelscope.records").setLevel(logging.CRITICAL)  # damaged lines are what this is about
_LINES = 50  # changed lines a results file

# One case: where it may write, and its generator → how many files or records were tried.
Target = Callable[[Path, random.Random], int]


# -------------------------------------------------------------------------------------------------- models


@cache
def models() -> dict[str, bytes]:
    """Honest ONNX files."""
    from models import catalogue

    shaped = make_model(SHAPED, {"x": ("N", 2, 2)}, ["y"], SMALL_CONSTANTS, ranks={"y": 3})
    return {
        "net": small_net().whole_proto().SerializeToString(),
        "fixed": small_net(2).whole_proto().SerializeToString(),
        "shapes": shaped.SerializeToString(),
        "functions": with_functions([RELU, *(twice(i) for i in range(3))], 3).SerializeToString(),
        "subgraphs": nested(2).SerializeToString(),
        **{name: catalogue.path(name).read_bytes() for name in ("lenet5-digits", "ece408-low")},
    }


@cache
def _parts() -> tuple[Any, ...]:
    """What stands in any of the models, to be put into another."""
    return tuple(
        part
        for name, data in models().items()
        if name not in ("lenet5-digits", "ece408-low")  # whose weights are most of them
        for part in changes.messages(onnx.ModelProto.FromString(data))
    )


def model(folder: Path, drawn: random.Random) -> int:
    """An ONNX model, its bytes or fields changed, loaded, cut into groups and planned."""
    name, data = drawn.choice(list(models().items()))
    if drawn.random() < 0.4:
        made = changes.turned(data, drawn)
    else:
        proto = onnx.ModelProto.FromString(data)
        changes.edit(proto, drawn, _parts())
        with contextlib.suppress(ValueError):  # not UTF-8, or deeper than protobuf writes
            data = proto.SerializeToString()
        made = data
    _loaded(folder / f"{name}.onnx", made, drawn.choice(["cpu", "cuda"]))
    return 1


def tensor(folder: Path, drawn: random.Random) -> int:
    """A model of one node and one weight, of which everything that a weight says of itself is changed."""
    proto = onnx.ModelProto.FromString(_one_weight())
    changes.edit(proto.graph.initializer[0], drawn, most=4)
    if drawn.random() < 0.3:
        changes.edit(proto.graph.input[0], drawn)
    if drawn.random() < 0.3:
        entry = proto.graph.initializer[0].external_data.add()
        entry.key, entry.value = (
            drawn.choice(["location", "offset", "length"]),
            drawn.choice(changes.TEXTS[:4]),
        )
        proto.graph.initializer[0].data_location = drawn.choice([0, 1])
    try:
        data = proto.SerializeToString()
    except ValueError:
        return 1
    _loaded(folder / "weight.onnx", changes.turned(data, drawn) if drawn.random() < 0.2 else data, "cpu")
    return 1


@cache
def _one_weight() -> bytes:
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"], "add")
    made = make_model([node], {"x": ("N", 4)}, ["y"], {"w": np.ones((1, 4), np.float32)})
    data: bytes = made.SerializeToString()
    return data


def _loaded(path: Path, data: bytes, device: str) -> None:
    path.write_bytes(data)
    with _ours():
        graph = load(path)
        batch = graph.fixed_batch or 2
        groups(graph, batch)
        plan(graph, batch, device)


@contextlib.contextmanager
def _ours(*more: type[Exception]) -> Any:
    """What the user is told in a sentence is no finding; one of several lines is one."""
    try:
        yield
    except KernelscopeError as error:
        if len(str(error).splitlines()) != 1:
            raise RuntimeError(f"a sentence of several lines: {error}") from error
    except more:
        pass


# ------------------------------------------------------------------------------------------------- folders

_RECORDS = {"run": store.RUN_FILE, "ladder": store.LADDER_FILE, "profile": store.PROFILE_FILE}


@cache
def _honest(kind: str, folder: Path) -> dict[str, bytes]:
    """The files of an honest folder, by their names in it."""
    made = folder / f"honest-{kind}"
    shutil.rmtree(made, ignore_errors=True)
    test_folders.KINDS[kind](made)
    return {str(p.relative_to(made)): p.read_bytes() for p in sorted(made.rglob("*")) if p.is_file()}


@cache
def _planted(kind: str, folder: Path) -> Path:
    """An honest folder, in which one file is overwritten at a time."""
    path = folder / kind
    for name, data in _honest(kind, folder).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


@cache
def _lines(kind: str, folder: Path) -> tuple[str, ...]:
    every = _honest(kind, folder)[store.RESULTS_FILE].decode().splitlines()
    return tuple(json.dumps(_short(_decoded(line))) for line in every)


def _short(record: Any) -> Any:
    """A record with some of its samples: of thousands that are alike each takes its time."""
    if isinstance(record, dict):
        return {key: _short(value) for key, value in record.items() if key != "sum"}
    return [_short(value) for value in record[:12]] if isinstance(record, list) else record


@contextlib.contextmanager
def _with(path: Path, data: bytes) -> Any:
    held = path.read_bytes()
    path.write_bytes(data)
    try:
        yield
    finally:
        path.write_bytes(held)


def lines(folder: Path, drawn: random.Random) -> int:
    """Lines of results of any kind, changed and mostly with the checksum that goes with the change, read."""
    kind = drawn.choice(list(_RECORDS))
    path = _planted(kind, folder)
    made = b"".join(_line(drawn.choice(_lines(kind, folder)), drawn) for _ in range(_LINES))
    with _with(path / store.RESULTS_FILE, made), _ours():
        open_folder(path).measurements()
        summaries.summary(path)
    return _LINES


def _line(line: str, drawn: random.Random) -> bytes:
    if drawn.random() < 0.1:
        return changes.turned(line.encode(), drawn, len(line)) + b"\n"
    data = changes.written(changes.changed(_decoded(line), drawn), drawn)
    return _with_sum(data) if drawn.random() < 0.7 else data + b"\n"


def _decoded(line: str | bytes) -> Any:
    return json.loads(line)


def records(folder: Path, drawn: random.Random) -> int:
    """run.json, ladder.json and profile.json, changed, opened and listed."""
    kind = drawn.choice(list(_RECORDS))
    path = _planted(kind, folder)
    record = _decoded(_honest(kind, folder)[_RECORDS[kind]])
    data = changes.written(changes.changed(record, drawn), drawn)
    with _with(path / _RECORDS[kind], data):
        with _ours():
            open_folder(path).measurements()
        summaries.summaries(path.parent)
    return 1


def shown(folder: Path, drawn: random.Random) -> int:
    """A folder with changed lines or a changed record, in every table and chart that there is of it."""
    kind = drawn.choice(list(_RECORDS))
    with _changed_folder(kind, folder, drawn) as (path, count), _ours():
        _SHOW[kind](path)
    return count


def written(folder: Path, drawn: random.Random) -> int:
    """The same, copied, made small, reported; and one of its charts drawn."""
    kind, target = drawn.choice(list(_RECORDS)), folder / "written"
    ways: dict[str, Callable[[Path], Any]] = {
        "copy": lambda path: folders.copy(path, target),
        "thin": lambda path: thin.thin(path, target),
        "report": lambda path: _report(kind, path, target),
        "chart": lambda path: _draw(_SHOW[kind](path), target, drawn),
    }
    way = drawn.choice(list(ways))
    try:
        with _changed_folder(kind, folder, drawn) as (path, count), _ours():
            ways[way](path)
    finally:
        shutil.rmtree(target, ignore_errors=True)
    return count


def _report(kind: str, path: Path, target: Path) -> None:
    """Without its pictures, which are drawn one by one."""
    module = {"run": report, "ladder": ladder_report, "profile": profile_report}[kind]
    with patch.object(module, "_draw", lambda *_: []):
        module.write([path], target / "report.md")  # type: ignore[attr-defined]  # each has one


def _draw(made: Sequence[Chart], target: Path, drawn: random.Random) -> None:
    if made:
        draw.write([drawn.choice(made)], target, ["svg"])


@contextlib.contextmanager
def _changed_folder(kind: str, folder: Path, drawn: random.Random) -> Iterator[tuple[Path, int]]:
    """A folder in which a record or lines are changed, and how many."""
    path = _planted(kind, folder)
    if drawn.random() < 0.3:
        name, count = _RECORDS[kind], 1
        data = json.dumps(changes.changed(_decoded(_honest(kind, folder)[name]), drawn)).encode()
    else:
        name = store.RESULTS_FILE
        every = _lines(kind, folder)
        made = [_summed(line, drawn) if drawn.random() < 0.3 else line.encode() + b"\n" for line in every]
        data, count = b"".join(made), len(every)
    with _with(path / name, data):
        yield path, count


def _summed(line: str, drawn: random.Random) -> bytes:
    """A changed line whose checksum fits."""
    return _with_sum(json.dumps(changes.changed(_decoded(line), drawn)).encode())


def _with_sum(data: bytes) -> bytes:
    if data.endswith(b"}") and len(data) > 2:
        data = data[:-1] + b',"sum":"%08x"}' % zlib.crc32(data)
    return data + b"\n"


def _show_run(path: Path) -> list[Chart]:
    folder = RunFolder.open(path)
    measurements = in_order(folder.run, folder.measurements())
    made = rows(measurements)
    tables.to_csv(tables.records(made))
    tables.to_csv(tables.layer_records(measurements), tables.LAYER_COLUMNS)
    tables.to_json(tables.records(made))
    tables.to_markdown(made)
    from bench import terminal_tables

    _printed(terminal_tables.terminal(made))
    _printed(terminal_tables.layers(measurements))
    footer([folder.run], measurements)
    return charts([(folder.run, measurements)]) if measurements else []


def _show_ladder(path: Path) -> list[Chart]:
    folder = LadderFolder.open(path)
    measurements = folder.measurements()
    rungs = ladder_rows.rows(folder.ladder, measurements)
    whole = ladder_rows.rows(folder.ladder, measurements, "model")
    ladder_tables.to_csv([*rungs, *whole])
    ladder_tables.to_json(folder.ladder, rungs, whole)
    ladder_tables.to_markdown([*rungs, *whole])
    _printed(ladder_tables.terminal(folder.ladder, rungs, whole))
    ladder_charts.footer(folder.ladder)
    return ladder_charts.charts(folder.ladder, rungs)


def _show_profile(path: Path) -> list[Chart]:
    folder = ProfileFolder.open(path)
    measurements = folder.measurements()
    for table in tables_of(folder, measurements, Shown()):
        to_csv(table)
    fine = [made for made in measurements if made.disposition == "ok"]
    for made in measurements:
        profile_remarks.remarks(made)
    return profile_charts.charts(folder.profile, fine, folder.events) if fine else []


def _printed(shown: Any) -> None:
    from rich.console import Console

    Console(file=io.StringIO(), width=120).print(shown)


_SHOW = {"run": _show_run, "ladder": _show_ladder, "profile": _show_profile}


# -------------------------------------------------------------------------------------------- packed files


@cache
def _arrays() -> bytes:
    made = io.BytesIO()
    count = 6
    np.savez_compressed(
        made,
        label=np.arange(count),
        predicted=np.arange(count),
        confidence=np.linspace(0, 1, count, dtype=np.float32),
        top5=np.zeros((count, 5), np.int64),
        margin=np.ones(count, np.float32),
        ns=np.ones(count),
        pixels=np.zeros((count, 2, 2), np.uint8),
        classes=np.array([b"a", b"b"]),
    )
    return made.getvalue()


def packed(folder: Path, drawn: random.Random) -> int:
    """npz files: the archive's own bytes changed, or an array's header, in an archive that is sound."""
    path = folder / "arrays.npz"
    path.write_bytes(
        changes.turned(_arrays(), drawn, len(_arrays())) if drawn.random() < 0.4 else _headers(drawn)
    )
    with _ours(reading.Refused):
        npz.arrays(path, most=64 << 20)
    with _ours(reading.Refused):
        predictions.load(path)
    with _ours():
        gallery.load_images(path)
    with _ours():
        gallery.load_answers(path)
    return 1


def _headers(drawn: random.Random) -> bytes:
    import zipfile

    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_arrays())) as honest, zipfile.ZipFile(made, "w") as archive:
        for name in honest.namelist():
            data = honest.read(name)
            if drawn.random() < 0.4:
                data = _header(data, drawn)
            archive.writestr(name, data)
    return made.getvalue()


def _header(data: bytes, drawn: random.Random) -> bytes:
    if drawn.random() < 0.3:
        return changes.turned(data, drawn, 120)
    size = int.from_bytes(data[8:10], "little")
    held = {
        "descr": drawn.choice(["'<f4'", "'|O'", "'<i8'", "'|S9'", "[('a','<f4')]", "'<M8[s]'", "1", "'V0'"]),
        "fortran_order": drawn.choice(["False", "True", "1", "None"]),
        "shape": drawn.choice(
            [
                "(6,)",
                "()",
                "(-1,)",
                "(6,6)",
                "(2**62,)",
                f"({2**62},4)",
                "(0,)",
                "(" * 90 + ")" * 90,
                "(1.5,)",
            ]
        ),
    }
    if drawn.random() < 0.2:
        held.pop(drawn.choice(list(held)))
    text = "{" + ", ".join(f"'{key}': {value}" for key, value in held.items()) + ", }\n"
    new = text.encode()
    length = len(new) if drawn.random() < 0.8 else drawn.randrange(1 << 16)
    return data[:8] + length.to_bytes(2, "little") + new + data[10 + size :]


def events(folder: Path, drawn: random.Random) -> int:
    """A profile's events: the gzip's bytes changed, or lines in one that is sound."""
    import gzip

    path = _planted("profile", folder)
    name = next(name for name in _honest("profile", folder) if name.endswith(".gz"))
    held = _honest("profile", folder)[name]
    count = 1
    if drawn.random() < 0.3:
        data = changes.turned(held, drawn, len(held))
    else:
        every = gzip.decompress(held).splitlines()
        at = {drawn.randrange(len(every)) for _ in range(8)}
        count = len(at)
        made = [
            changes.written(changes.changed(_decoded(line), drawn), drawn) if i in at else line
            for i, line in enumerate(every)
        ]
        data = gzip.compress(b"\n".join(made) + b"\n", 1)
    with _with(path / name, data), _ours():
        profile = ProfileFolder.open(path)
        for made in profile.measurements():
            if made.file == name:
                profile.events(made)
    return count


# By name: what, and its share of the time.
TARGETS: dict[str, tuple[Target, float]] = {
    "model": (model, 8.0),
    "tensor": (tensor, 4.0),
    "lines": (lines, 4.0),
    "records": (records, 2.0),
    "packed": (packed, 2.0),
    "events": (events, 1.0),
    "shown": (shown, 4.0),
    "written": (written, 3.0),
}
# Those of which a case is one model.
MODELS = ("model",)
