"""Exporting a saved run: chosen charts in every format, two runs in one chart, and the run itself."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

import main
from bench.results.summaries import summaries
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views.charts.comparison_charts import charts
from bench.views.charts.overlay import lay_over, short_name
from tests.bench import synthetic
from tests.bench.results.test_thin import saved

pytestmark = pytest.mark.slow

CPU = ("engine-cpu", "ort-cpu")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    failures = {("engine-cpu", 4): ("crashed", "the worker was killed")}
    return saved(tmp_path / "first", *synthetic.run(backends=CPU, batches=(1, 2, 4), failures=failures)).path


def export(*arguments: object) -> int:
    return main.main(["export", *map(str, arguments)])


@pytest.mark.sampled(4, "long")
def test_one_chart_goes_into_one_file_of_any_kind(run: Path, tmp_path: Path) -> None:
    for ending in ("png", "svg", "pdf", "csv"):
        assert export(run, "--chart", "op-time", "--file", tmp_path / f"time.{ending}") == 0
    chart = next(c for c in charts([_data(run)]) if c.name.endswith("op-time"))
    with Image.open(tmp_path / "time.png") as image:
        image.load()
        assert image.text["Description"] == chart.finding
    root = ElementTree.parse(tmp_path / "time.svg").getroot()
    assert chart.finding in " ".join(root.itertext())
    assert (tmp_path / "time.pdf").read_bytes().startswith(b"%PDF")
    with (tmp_path / "time.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    measured = [line for line in lines if line["value"]]
    assert {(line["series"], line["batch"]) for line in measured} == {
        ("engine-cpu", "1"), ("engine-cpu", "2"), ("ort-cpu", "1"), ("ort-cpu", "2"), ("ort-cpu", "4"),
    }  # fmt: skip
    assert all(float(line["low"]) <= float(line["value"]) <= float(line["high"]) for line in measured)
    [failed] = [line for line in lines if line["disposition"]]
    assert failed["reason"] == "the worker was killed"


@pytest.mark.usefixtures("blank_pictures")
def test_a_scale_gives_more_pixels(run: Path, tmp_path: Path) -> None:
    sizes = []
    for scale in (1, 2):
        target = tmp_path / f"{scale}.png"
        assert export(run, "--chart", "speed", "--file", target, "--scale", scale) == 0
        with Image.open(target) as image:
            sizes.append(image.size)
    assert sizes[1] == pytest.approx((2 * sizes[0][0], 2 * sizes[0][1]), abs=2)


def test_bars_come_out_as_numbers_by_backend_and_category(run: Path, tmp_path: Path) -> None:
    assert export(run, "--chart", "breakdown", "--charts", "csv", "--out", tmp_path) == 0
    with (tmp_path / "lenet5-digits-breakdown.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["value"]]
    shares: dict[tuple[str, str], float] = {}
    for line in lines:
        place = (line["panel"], line["batch"])
        shares[place] = shares.get(place, 0) + float(line["value"])
    assert set(shares) == {(b, n) for b in CPU for n in "124"} - {("engine-cpu", "4")}
    assert all(total == pytest.approx(1) for total in shares.values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--chart", "op-tim"), "did you mean 'op-time'"),
        (("--file", "x.gif", "--chart", "speed"), "'gif' is not known"),
        (("--file", "x.png"), "name it by --chart"),
        (("--scale", "0"), "--scale 0"),
        (("--over", "nowhere"), "holds no run"),
    ],
)
def test_a_mistake_is_one_sentence(
    run: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(run, *arguments) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("blank_pictures")
def test_two_runs_stand_in_one_chart(run: Path, tmp_path: Path) -> None:
    other = saved(tmp_path / "second", *synthetic.run(backends=CPU, batches=(2, 8))).path
    made = {c.name: c for c in lay_over(charts([_data(run)]), charts([_data(other)]), "second")}
    times = made["lenet5-digits-op-time"].panels[0]
    assert [(s.label, s.overlay) for s in times.series] == [
        ("engine-cpu", False), ("ort-cpu", False), ("engine-cpu · second", True), ("ort-cpu · second", True),
    ]  # fmt: skip
    assert times.x.ticks == (1, 2, 4, 8)
    assert [p.title for p in made["lenet5-digits-breakdown"].panels] == [
        "engine-cpu", "engine-cpu · second", "ort-cpu", "ort-cpu · second",
    ]  # fmt: skip
    assert export(run, "--over", other, "--charts", "png", "--out", tmp_path / "both") == 0
    assert len(list((tmp_path / "both").glob("*.png"))) == len(made)


@pytest.mark.usefixtures("blank_pictures")
def test_several_runs_stand_over_one_in_their_order(run: Path, tmp_path: Path) -> None:
    made = charts([_data(run)])
    for number, name in enumerate(("second", "third"), start=1):
        other = saved(tmp_path / name, *synthetic.run(backends=CPU, batches=(2, 8))).path
        made = lay_over(made, charts([_data(other)]), name, number)
    found = {c.name: c for c in made}
    times = found["lenet5-digits-op-time"]
    assert times.notes[0] == "Thin lines with small marks: second, third."
    lines = {s.label: (s.overlay, s.marker) for s in times.panels[0].series}
    assert [lines[f"engine-cpu{of}"] for of in ("", " · second", " · third")] == [
        (0, "o"),
        (1, "o"),
        (2, "<"),
    ]
    assert [p.title for p in found["lenet5-digits-breakdown"].panels] == [
        "engine-cpu", "engine-cpu · second", "engine-cpu · third",
        "ort-cpu", "ort-cpu · second", "ort-cpu · third",
    ]  # fmt: skip
    over = [word for name in ("second", "third") for word in ("--over", tmp_path / name)]
    assert export(run, *over, "--charts", "svg", "--out", tmp_path / "all") == 0


def test_a_run_named_by_its_date_is_called_by_it() -> None:
    assert short_name(Path("runs/20261120-224452-lenet5-digits")) == "2026-11-20 22:44"
    assert short_name(Path("runs/before the change")) == "before the change"


def test_a_copied_run_opens_and_a_half_written_line_does_no_harm(run: Path, tmp_path: Path) -> None:
    whole = COMPARISON.open(run).measurements()
    with (run / "results.jsonl").open("ab") as file:
        file.write(b'{"case": {"model": "lene')
    (run / ".run.json.xyz").write_bytes(b"in the making")
    target = tmp_path / "copies" / "of-it"
    assert main.main(["runs", "copy", str(run), str(target)]) == 0
    assert COMPARISON.open(target).measurements() == whole
    assert not list(target.glob(".*"))
    assert main.main(["runs", "copy", str(run), str(target)]) == 2


def test_a_summary_counts_what_is_there(run: Path) -> None:
    [summary] = summaries(run.parent)
    assert (summary.measured, summary.ok, summary.failed) == (6, 5, 1)
    assert summary.backends == CPU
    assert summary.batches == (1, 2, 4)
    assert summary.models == ("lenet5-digits",)


def _data(path: Path) -> tuple:
    folder = COMPARISON.open(path)
    return folder.header, folder.measurements()


def test_numbers_of_a_chart_say_where_they_stand(tmp_path: Path) -> None:
    """Kernels have names and intensities are fractions: neither is a batch size."""
    found: dict[str, list[dict[str, str]]] = {}
    for name in ("lenet_on_h200", "conv_on_two_cores"):
        assert export(Path(__file__).parents[2] / "data" / name, "--charts", "csv", "--out", tmp_path) == 0
    for path in tmp_path.iterdir():
        with path.open(newline="") as file:
            found[path.stem] = list(csv.DictReader(file))
    assert {line["x"] for line in found["profile-breakdown"]} == {
        line["batch"] for line in found["profile-breakdown"]
    }
    assert "02 im2col" in {line["x"] for line in found["ladder-speed"]}
    rooflines = [line for name, lines in found.items() if "roofline" in name for line in lines]
    assert not any(line["batch"] for line in rooflines)
    assert any(float(line["x"]) % 1 > 0 for line in rooflines)


@pytest.mark.usefixtures("blank_pictures")
def test_a_profile_is_drawn_again_with_its_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = Path(__file__).parents[2] / "data" / "lenet_on_h200"
    assert export(profile, "--charts", "svg", "--csv", "--out", tmp_path / "all") == 0
    made = {path.name for path in (tmp_path / "all").iterdir()}
    assert {
        "profile-breakdown.svg",
        "profile-timeline.svg",
        "breakdown.csv",
        "cold.csv",
        "process.csv",
    } <= made
    assert any(name.endswith("-calls.csv") for name in made)
    with (tmp_path / "all" / "breakdown.csv").open(newline="") as file:
        assert all(float(line["wall_ns"]) > 0 for line in csv.DictReader(file))
    one = ("--chart", "profile-breakdown", "--file", tmp_path / "one.svg")
    assert export(profile, *one) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"all", "one.svg"}
    assert export(profile, "--chart", "timeline", "--charts", "svg", "--out", tmp_path / "alone") == 0
    assert [path.name for path in (tmp_path / "alone").iterdir()] == ["profile-timeline.svg"]
    capsys.readouterr()
    assert export(profile, "--chart", "timeline", "--charts", "csv", "--out", tmp_path / "none") == 2
    assert "timeline is drawn as png, svg or pdf" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    capsys.readouterr()
    assert export(profile, "--over", profile) == 2
    assert "a profile cannot be laid over one" in capsys.readouterr().err
    for command in (["compare", "--resume"], ["ladder", "--resume"]):
        assert main.main([*command, str(profile)]) == 2
        assert "but holds a profile" in capsys.readouterr().err
