"""The view of a comparison: what is printed, exported and told of it in a list; what goes when it is made
small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from bench.results import doubt, gallery, npz
from bench.results import thin as bench_public
from bench.results.records import LEFT_OUT, Case, Layer, Measurement, Run, stem
from bench.results.rows import COMPLETED, Row, by_model, label, rows
from bench.run.kinds.comparison import RunFolder
from bench.words import orders
from kernels.errors import DataError

if TYPE_CHECKING:
    from bench.views.charts.comparison_charts import RunData
    from bench.views.charts.definitions import Chart
    from bench.views.tables.table import Table

OUTPUT = "bench.views.tables.scoreboard:ComparisonOutput"


def show(folder: RunFolder, format: str, layers: bool = False, bisect: bool = False) -> None:
    """layers: the time and errors of each, too. bisect: also where each case first leaves the reference."""
    show_runs([(folder.header, folder.measurements())], format, layers, bisect)


def show_runs(found: Sequence[RunData], format: str, layers: bool = False, bisect: bool = False) -> None:
    """Several runs as one. The verdicts stand above the tables, or on standard error where a machine reads
    the output."""
    from bench.views import show as views
    from bench.views.diff import bisect as leaving
    from bench.views.sentences.verdicts import verdicts
    from bench.views.tables import comparison_tables as tables
    from bench.views.tables import scoreboard, terminal_tables
    from bench.views.tables.table import pick, to_markdown

    runs = [run for run, _ in found]
    measurements = [m for _, measured in found for m in measured]
    shown = rows(measurements)
    said = verdicts(shown, runs)
    left = leaving.lines(shown) if bisect else ()

    def paper() -> str:
        boards = [scoreboard.table(verdict.board) for verdict in said]
        cases = tables.readable(shown)
        cases = replace(cases, columns=(*cases.columns, *pick(tables.COLUMNS, "reason")))
        of_layers = replace(tables.layer_table(measurements), columns=tables.READABLE_LAYERS)
        papers: list[Table[Any]] = [*(board for board in boards if board.rows), cases, *[of_layers] * layers]
        return "\n".join(map(to_markdown, papers))

    views.show(
        format,
        csv=lambda: [tables.table(shown), *[tables.layer_table(measurements)] * layers],
        output=lambda: scoreboard.output(runs, shown, said, measurements if layers else None),
        paper=paper,
        drawn=lambda: [
            terminal_tables.terminal(shown, runs),
            *[terminal_tables.layers(measurements)] * layers,
            *left,
        ],
        page=lambda: (
            [verdict.line for verdict in said if verdict.line],
            [board for verdict in said if (board := scoreboard.table(verdict.board)).rows],
        ),
        told=[*(verdict.line for verdict in said), *left] if format not in ("table", "html") else (),
    )


def below(folder: RunFolder) -> Sequence[str]:
    """What stands below its tables."""
    from bench.views.sentences.footer import footer

    return footer([folder.header], folder.measurements())


def charts(folder: RunFolder) -> list[Chart]:
    from bench.views.charts import comparison_charts

    return comparison_charts.charts([(folder.header, folder.measured())])


def numbers(folder: RunFolder) -> dict[str, Table[Any]]:
    """Its tables by the name of the file."""
    from bench.views.tables import comparison_tables as tables

    measurements = folder.measured()
    return {"results": tables.table(rows(measurements)), "layers": tables.layer_table(measurements)}


READS = ("reference", "samples_ns", "rounds", "instances", "quantile", "load", "validity")


def result(run: Run, lines: Sequence[Any]) -> str:
    """ "engine-cpu 1.30× to 2.40× faster than ort-cpu"; with several models each after its name. A "!" is
    behind a span of which a figure is doubted; what is not decided is told as that."""
    found = by_model(rows(lines))
    told = {model: text for model, items in found.items() if (text := ", ".join(_spans(items)))}
    if len(found) == 1:
        return next(iter(told.values()), "")
    return "; ".join(f"{stem(model)}: {text}" for model, text in told.items())


def _spans(items: Sequence[Row]) -> list[str]:
    """Of each contender over the batch sizes, a span for each verdict."""
    compared: dict[tuple[str, str], list[Row]] = {}
    for row in items:
        if row.speedup is not None and row.against is not None:
            who = label(row.case.backend, row.case.precision)
            compared.setdefault((who, row.against.case.backend), []).append(row)
    made = []
    for (who, reference), its in compared.items():
        parts = []
        for verdict in orders.WORDS:
            if alike := [row for row in its if row.verdict == verdict]:
                decided = orders.decided(verdict)
                doubts = [text for row in alike for text in row.speedup_doubts if decided]
                some = f" in {len(alike)} of {len(its)}" if len(alike) < len(its) else ""
                told = orders.range_against(verdict, [row.speedup for row in alike], reference)
                parts.append(doubt.marked(told + some, doubts))
        made.append(f"{who} {', '.join(parts)}")
    return made


LESS = "run fewer batch sizes or models"
_GREYS = 15  # of a kept image, above black


@dataclass(frozen=True)
class ComparisonGrade:
    """How much goes. errors: whether every case keeps its layers' errors; shapes: their sizes, or only the
    times by which a pass is divided; images: kept of a data set, the first ones."""

    errors: bool
    shapes: bool
    images: int


GRADES = (
    ComparisonGrade(True, True, 400),
    ComparisonGrade(False, True, 400),
    ComparisonGrade(False, False, 400),
    ComparisonGrade(False, False, 200),
    ComparisonGrade(False, False, 100),
    ComparisonGrade(False, False, 50),
)


def thin_measurement(measurement: Measurement, errors: bool, shapes: bool) -> Measurement:
    """One measurement without what goes of its layers. errors: whether they keep theirs; shapes: their sizes
    and work."""
    if errors:
        return measurement
    timed = any(layer.time_ns is not None for layer in measurement.layers)
    layers = tuple(_layer(layer, shapes) for layer in measurement.layers if shapes or timed)
    if layers == measurement.layers:
        return measurement
    gone = "errors of its layers" if shapes else "errors and shapes of its layers"
    return msgspec.structs.replace(
        measurement, layers=layers, facts={**measurement.facts, LEFT_OUT: f"{gone}, to make the run small"}
    )


def _layer(layer: Layer, shapes: bool) -> Layer:
    if shapes:
        return msgspec.structs.replace(layer, isolated=None, propagated=None)
    return Layer(
        nodes=layer.nodes,
        op_type=layer.op_type,
        output=layer.output,
        time_ns=layer.time_ns,
        clock=layer.clock,
    )


# ---------------------------------------------------------------------------------------------- files


def lines(
    folder: RunFolder, measurements: Sequence[Measurement], target: Path, grade: ComparisonGrade
) -> list[Measurement]:
    """The measurements of `folder`, made small; answers and images into `target`."""
    whole = _whole(measurements)
    datasets = {info.name: info.dataset for info in folder.header.models}
    for case in whole:
        _answers(gallery.answers_path(folder.path, case), gallery.answers_path(target, case))
        dataset = datasets.get(case.model, "")
        images = gallery.images_path(folder.path, dataset, case)
        _images(images, gallery.images_path(target, dataset, case), grade.images)
    return [thin_measurement(m, grade.errors or m.case in whole, grade.shapes) for m in measurements]


def public(run: Run) -> Run:
    """Also a file of labels, of inputs or of a preprocessing by its name, without where it lies."""
    job = msgspec.structs.replace(
        run.job,
        labels=run.job.labels and Path(run.job.labels).name,
        preprocess=run.job.preprocess and Path(run.job.preprocess).name,
        inputs={name: Path(value).name for name, value in run.job.inputs.items()},
    )
    return bench_public.public(msgspec.structs.replace(run, job=job))


def _whole(measurements: Iterable[Measurement]) -> set[Case]:
    """The cases that keep what they have: of each model, backend and precision one that is sound. All of the
    largest batch that every one of them ran, with the most images, so that they can be compared; where there
    is none, each of its own largest."""
    sound: dict[str, dict[tuple[str, str], list[Case]]] = {}
    for m in measurements:
        if m.disposition in COMPLETED:
            case = m.case
            sound.setdefault(case.model, {}).setdefault((case.backend, case.precision), []).append(case)
    found = set()
    for contenders in sound.values():
        shared = set.intersection(*({_size(case) for case in cases} for cases in contenders.values()))
        for cases in contenders.values():
            found.add(max((c for c in cases if not shared or _size(c) == max(shared)), key=_size))
    return found


def _size(case: Case) -> tuple[int, int]:
    return case.images, case.batch


def _answers(source: Path, target: Path) -> None:
    """Answers with their confidence to a thousandth, which packs better; none where there are none."""
    try:
        gallery.load_answers(source)
    except DataError:
        return
    columns = npz.arrays(source)
    columns["confidence"] = columns["confidence"].round(3)
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, **columns)  # type: ignore[arg-type]  # by name


def _images(source: Path, target: Path, count: int) -> None:
    """The first images, in few greys, which pack better; none where there are none."""
    if target.exists():
        return
    try:
        images = gallery.load_images(source)
    except DataError:
        return
    step = 255 / _GREYS
    pixels = (np.round(images.pixels / step) * step).astype(np.uint8)
    gallery.keep_images(target, pixels[:count], images.classes, count)
