"""Drawing: files that open, the same bytes each time, and no text beyond the page or upon another."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import msgspec
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from bench.views.charts.comparison_charts import charts
from bench.views.charts.definitions import Axis, Bar, BarPart, Category, Chart, Panel
from bench.views.drawing import draw, draw_panels, draw_together
from bench.views.drawing.looks import PAGE, Look
from kernels.errors import InputError
from tests.bench import synthetic

pytestmark = pytest.mark.slow

LONG = "the device ran out of memory while " + "allocating the workspace of a convolution " * 6
FAILURES = {
    ("engine-cuda", 64): ("out_of_memory", LONG),
    ("engine-cpu", 16): ("incorrect", "$x$ is off by 3.4e-02"),
    ("ort-cpu", 1): ("timed_out", "600 s"),
}
RUNS = {
    "one": {"backends": ("ort-cpu",), "batches": (1,)},
    "full": {"failures": FAILURES, "batches": (1, 4, 16, 64, 512, 2048)},
    "precisions": {"precisions": ("fp32", "tf32", "fp16"), "batches": (1, 2, 4, 100, 10_000)},
    "dense": {"batches": tuple(range(1, 17)), "images": (100, 1000)},
}


def drawn(name: str) -> Iterator[Chart]:
    yield from charts([synthetic.run(**RUNS[name])])  # type: ignore[arg-type]


@pytest.mark.sampled(4, "long")
def test_files_of_each_kind_open_and_the_same_chart_gives_the_same_bytes(tmp_path: Path) -> None:
    chart = next(drawn("full"))
    paths = draw_together.write([chart], tmp_path / "charts")
    assert [path.name for path in paths] == [f"{chart.name}.{kind}" for kind in draw.FORMATS]
    with Image.open(paths[0]) as image:
        image.verify()
        assert image.size[0] > 1000
    assert ElementTree.parse(paths[1]).getroot().tag.endswith("svg")
    assert paths[2].read_bytes().startswith(b"%PDF-")
    assert paths[2].read_bytes().rstrip().endswith(b"%%EOF")
    assert sorted(p.name for p in (tmp_path / "charts").iterdir()) == sorted(p.name for p in paths)
    assert list(draw.render(chart).values()) == [path.read_bytes() for path in paths]


def test_many_charts_are_drawn_by_processes_of_their_own_in_order_and_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = list(itertools.islice(itertools.cycle(drawn("one")), draw_together.FEW + 1))
    monkeypatch.setattr("psutil.cpu_count", lambda logical: 2)
    made = list(draw_together.rendered(found, ("svg",)))
    assert [chart for chart, _ in made] == found
    assert made[0][1] == draw.render(found[0], ("svg",))
    assert all(pictures["svg"].startswith(b"<?xml") for _, pictures in made)


@pytest.mark.sampled(4, "long")
def test_what_is_expected_is_drawn_by_processes_that_were_loaded_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draw_together, "_expected", threading.Event())
    monkeypatch.setattr("psutil.cpu_count", lambda logical: draw_together.ENOUGH_CORES - 1)
    draw_together.expect()
    assert not draw_together.expected(), "with few cores it would be in the way of what is measured"
    monkeypatch.setattr("psutil.cpu_count", lambda logical: draw_together.ENOUGH_CORES)
    draw_together.expect()
    assert draw_together.expected()
    chart = next(drawn("one"))
    ((_, made),) = draw_together.rendered([chart], ("png", "svg"))
    assert made == draw.render(chart, ("png", "svg"))


@pytest.mark.sampled(4, "long")
def test_they_are_loaded_ahead_wherever_the_user_stands(tmp_path: Path) -> None:
    """Of the server, by its own environment; a process of it that had to load matplotlib would say so."""
    script = tmp_path / "there.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(Path(draw.__file__).parents[3])!r})\n"
        "from bench.views.drawing import draw_together\n"
        "def loaded(_):\n"
        "    return 'matplotlib.figure' in sys.modules, 'bench.views.drawing.draw_panels' in sys.modules\n"
        "if __name__ == '__main__':\n"
        "    import os, psutil\n"
        "    psutil.cpu_count = lambda logical=True: draw_together.ENOUGH_CORES\n"
        "    draw_together.expect()\n"
        "    assert 'PYTHONPATH' not in os.environ\n"
        "    with draw_together.pool(1) as pool: print(*pool.submit(loaded, 0).result())\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["True", "True"], told.stderr


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gif"):
        draw_together.write([], tmp_path, ["gif"])


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        draw_together.write([next(drawn("one"))], tmp_path / "file" / "charts", ["png"])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", RUNS)
def test_no_text_leaves_the_page_or_lies_on_another(name: str) -> None:
    for chart in drawn(name):
        assert_texts_apart(chart)


def test_a_speed_up_that_is_not_known_breaks_its_line() -> None:
    failures = {("engine-cuda", 4): ("out_of_memory", "")}
    found = charts([synthetic.run(batches=(1, 2, 4, 8, 16), failures=failures)])
    chart = next(chart for chart in found if chart.name.endswith("-speed"))
    (line,) = (s for s in chart.panels[0].series if s.label == "engine-cuda")
    drawn_ = draw.figure(chart).axes[0].get_lines()
    (y,) = (list(d.get_ydata()) for d in drawn_ if d.get_color() == line.colour and len(d.get_ydata()) == 5)
    assert [math.isnan(value) for value in y] == [False, False, True, False, False]


def test_an_interval_that_says_nothing_leaves_the_values_to_be_seen() -> None:
    """Student's t of two instances that differ by much reaches over ten decades."""
    run, found = synthetic.run(**RUNS["full"])  # type: ignore[arg-type]
    wild = [
        msgspec.structs.replace(
            m, samples_ns=(m.samples_ns[0], 5 * m.samples_ns[0]), rounds=(0, 1), instances=(0, 1)
        )
        if m.samples_ns
        else m
        for m in found
    ]
    for shown in (found, wild):
        times = next(chart for chart in charts([(run, shown)]) if chart.panels[0].y.scale == "log")
        points = [p for series in times.panels[0].series for p in series.points]
        with matplotlib.rc_context({**matplotlib.rcParamsDefault, **draw.STYLE}):  # type: ignore[dict-item]
            low, high = draw.figure(times).axes[0].get_ylim()
        assert all(low < p.y < high for p in points)
        assert high / low < 1e3 * max(p.y for p in points) / min(p.y for p in points)
        if shown is wild:
            assert any(p.high is not None and p.high > 1e3 * high for p in points)


def assert_texts_apart(chart: Chart, look: Look = PAGE) -> None:
    """No text of the chart, drawn for paper, leaves the page or lies on another."""
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **draw.STYLE}):  # type: ignore[dict-item]
        figure = draw.figure(chart, look)
        figure.canvas.draw()
        page = figure.bbox
        renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        unseen = set(map(id, _beyond_the_axes(figure)))
        texts = [
            (text.get_text(), Text.get_window_extent(text, renderer))  # of a note without its line
            for text in figure.findobj(Text)
            if isinstance(text, Text) and id(text) not in unseen and text.get_text().strip()
        ]
    for words, box in texts:
        assert page.x0 <= box.x0, (chart.name, words)
        assert box.x1 <= page.x1, (chart.name, words)
        assert page.y0 <= box.y0, (chart.name, words)
        assert box.y1 <= page.y1, (chart.name, words)
    for (a, first), (b, second) in itertools.combinations(texts, 2):
        # Boxes hold the font's whole line, so neighbours may touch; a real overlap is more than a pixel
        # or two.
        width = min(first.x1, second.x1) - max(first.x0, second.x0)
        height = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert width <= 1 or height <= 2.5, (chart.name, a, b)


def _beyond_the_axes(figure: Figure) -> Iterator[Text]:
    """Labels of ticks outside an axis' limits: matplotlib keeps them and draws none."""
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            for tick in axis.get_major_ticks():
                if not limits[0] <= tick.get_loc() <= limits[1]:
                    yield tick.label1


@pytest.mark.sampled(4, "long")
def test_the_page_says_it_all() -> None:
    for chart in drawn("full"):
        with matplotlib.rc_context({**matplotlib.rcParamsDefault, **draw.STYLE}):  # type: ignore[dict-item]
            figure = draw.figure(chart)
            words = " ".join(t.get_text() for t in figure.findobj(Text) if isinstance(t, Text))
        words = words.replace("\u00a0", " ")
        for line in (chart.title, chart.finding, *chart.notes, *chart.footer):
            assert line in words
        for panel in chart.panels:
            assert panel.y.label in words


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (2e-5, "s", "20 µs"),
        (1.0, "s", "1 s"),
        (0.0, "s", "0"),
        (1500.0, "", "1.5 k"),
        (0.975, "%", "97.5 %"),
        (0.5, "×", "0.5×"),
    ],
)
def test_ticks_have_si_prefixes(value: float, unit: str, shown: str) -> None:
    assert draw_panels.tick(value, unit) == shown


def test_matplotlib_is_loaded_only_to_draw() -> None:
    modules = "bench.views.charts.comparison_charts, bench.views.drawing.draw, main"
    code = f"import sys, {modules}; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_rate_whose_interval_is_a_rounding_beside_it_is_drawn() -> None:
    """Where all samples are alike, a rate and its ends are divided each for themselves."""
    above = math.nextafter(7.0, 8)
    bar = Bar(x=0, parts=(BarPart(category="a", value=7.0),), interval=(above, above))
    panel = Panel(title="", x=Axis(label="x", ticks=(0,), labels=("a",)), y=Axis(label="y"), bars=(bar,))
    category = Category(key="a", label="a", colour="#336699")
    chart = Chart(name="a", model="", title="", finding="", panels=(panel,), categories=(category,))
    assert draw.render(chart, ("svg",))["svg"]
