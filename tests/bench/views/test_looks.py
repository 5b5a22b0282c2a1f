"""Pictures for a paper: as wide as they are to be, readable there and in grey, their words beside them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import msgspec
import numpy as np
import pytest
from matplotlib.text import Text

import main
from bench.results.ladder_rows import rows
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.profile import KIND as PROFILE
from bench.views.charts import ladder_charts, profile_charts
from bench.views.charts.comparison_charts import charts
from bench.views.charts.definitions import Chart
from bench.views.drawing import draw, looks
from bench.words import palette
from kernels.errors import InputError
from tests.bench import synthetic
from tests.bench.results.test_thin import saved

pytestmark = pytest.mark.slow

DOUBT = "! engine-cpu at batch 4: the machine was unquiet"
RECORDED = Path("tests/bench/results/recorded")


def drawn() -> list[Chart]:
    made = charts(
        [
            synthetic.run(
                batches=(1, 4, 16, 512, 2048),
                failures={("engine-cpu", 16): ("crashed", "it was killed by a signal")},
            )
        ]
    )
    return [msgspec.structs.replace(chart, notes=(*chart.notes, DOUBT)) for chart in made]


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **draw.STYLE}):
        yield


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("width", "inches"), [("one-column", 3.5), ("two-columns", 7.16), ("slide", 13.33)])
def test_a_picture_is_as_wide_as_asked_and_can_be_read_there(width: str, inches: float) -> None:
    for chart in drawn():
        made = draw.figure(chart, look := looks.look(width))
        looks.grown(made, look.growth)
        made.draw_without_rendering()
        assert made.get_size_inches()[0] == pytest.approx(inches, abs=0.01)
        shown = [text for text in made.findobj(Text) if text.get_visible() and text.get_text().strip()]
        assert min(text.get_fontsize() for text in shown) >= (6.0 if width != "slide" else 10.0)
        page = made.bbox
        renderer = made.canvas.get_renderer()  # type: ignore[attr-defined]
        for text in shown:
            box = text.get_window_extent(renderer)
            assert box.x0 >= -1, text.get_text()
            assert box.x1 <= page.x1 + 1, text.get_text()
        if width == "slide":
            assert made.get_size_inches()[1] <= 7.9, chart.name


def test_what_is_left_off_stands_in_the_caption_and_doubt_is_never_left_off() -> None:
    chart = drawn()[1]
    bare = looks.look("one-column")
    words = " ".join(text.get_text() for text in draw.figure(chart, bare).texts)
    assert chart.title not in words
    assert chart.footer[0] not in words
    assert "unquiet" in words
    assert "killed" in words
    told = looks.look("slide")
    assert DOUBT not in looks.notes(chart, told), "its finding counts them"
    assert any("killed" in note for note in looks.notes(chart, told))
    caption = looks.caption(chart)
    for said in (chart.title, chart.finding, DOUBT[2:], *chart.footer):
        assert said in caption
    whole = " ".join(
        text.get_text() for text in draw.figure(chart, looks.look("one-column", True, True, True)).texts
    )
    assert chart.title.split()[0] in whole


def test_text_is_text_in_svg_and_fonts_are_in_the_pdf() -> None:
    chart = next(found for found in drawn() if found.name.endswith("-op-time"))
    made = draw.render(chart, ("svg", "pdf"), look=looks.look("two-columns", title=True))
    texts = [
        "".join(e.itertext()) for e in ElementTree.fromstring(made["svg"]).iter() if e.tag.endswith("}text")
    ]
    assert chart.title in " ".join(texts)
    assert "batch size" in texts
    assert b"'DejaVu Sans', Verdana, sans-serif" in made["svg"]
    assert b"/FontFile2" in made["pdf"]
    assert b"/Type3" not in made["pdf"]


@pytest.mark.parametrize("colours", [palette.CATEGORIES, palette.STAGES])
def test_categories_are_told_apart_in_grey(colours: dict[str, tuple[str, str]]) -> None:
    whole = {"conv", "pool", "fc", "other"}  # compute stands for these
    for one, two in itertools.combinations(colours, 2):
        if "compute" in (one, two) and {one, two} & whole:
            continue
        apart = abs(palette.lightness(colours[one][1]) - palette.lightness(colours[two][1]))
        assert apart >= 7, (one, two)


def test_a_width_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'one-column'"):
        looks.look("one-colum")


def test_the_command_line_exports_for_a_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = saved(tmp_path / "run", *synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1, 4))).path
    out = tmp_path / "paper"
    asked = ["export", str(run), "--charts", "svg", "--chart", "op-time", "--out", str(out)]
    assert main.main([*asked, "--width", "one-column", "--finding"]) == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["lenet5-digits-op-time.svg", "lenet5-digits-op-time.txt"]
    assert capsys.readouterr().out.splitlines() == [str(out / name) for name in names]
    svg = (out / names[0]).read_text()
    assert re.search(r'width="252(\.0+)?pt"', svg), "3.5 inches"
    assert "python main.py" not in svg.partition("</metadata>")[2]
    assert "faster" in svg or "slower" in svg
    assert main.main([*asked[:-1], str(tmp_path / "page")]) == 0
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["lenet5-digits-op-time.svg"]


def test_times_of_a_profile_carry_their_intervals() -> None:
    folder = PROFILE.open(RECORDED / "profile")
    made = next(m for m in folder.measurements() if m.disposition == "ok")
    two = [
        msgspec.structs.replace(
            made,
            case=msgspec.structs.replace(made.case, batch=batch),
            pass_ns=tuple(batch * ns for ns in (100e3, 104e3, 101e3, 102e3)[: 4 if batch == 1 else 1]),
        )
        for batch in (1, 2)
    ]
    chart = profile_charts.times(folder.header, two)
    assert chart is not None
    known, alone = chart.panels[0].series[0].points
    assert known.low is not None
    assert known.high is not None
    assert known.y == pytest.approx(101.5e-6)
    assert 100e-6 <= known.low < known.y < known.high < 105e-6
    assert alone.low is None, "of one pass nothing is known but its time"


def test_bars_of_a_ladder_carry_their_intervals_and_have_its_backends_colours() -> None:
    folder = LADDER.open(RECORDED / "ladder")
    found = rows(folder.header, folder.measurements())
    speed = ladder_charts.speed(folder.header, found)
    timed = [bar for bar in speed.panels[0].bars if bar.parts]
    assert timed
    for bar in timed:
        assert bar.interval is not None
        assert bar.interval[0] < bar.parts[0].value < bar.interval[1]
    colours = {category.key: category.colour for category in speed.categories}
    assert colours["fp32"] == palette.backend(f"engine-{folder.header.job.device}"), "as on every page"
    assert speed.panels[0].baselines[0].colour == palette.backend(f"ort-{folder.header.job.device}")


def test_on_paper_too_failures_have_one_look_and_stand_below_every_value() -> None:
    chart = next(c for c in drawn() if c.name.endswith("op-time"))
    axes = draw.figure(chart).axes[0]
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert {line.get_color() for line in crosses} == {palette.FAILED}
    (lane,) = [patch.get_height() for patch in axes.patches]  # type: ignore[attr-defined]
    assert all(0 < y < lane for line in crosses for y in np.asarray(line.get_ydata()))
    values = [p.low or p.y for s in chart.panels[0].series for p in s.points]
    lowest = axes.transAxes.inverted().transform(axes.transData.transform((1, min(values))))[1]
    assert lowest > lane
