"""Reports in HTML: one file that holds everything, loads nothing, sorts by figures and shows text as text."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

import main
from bench.results.kinds import kinds
from bench.results.rows import rows
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views.reports import comparison_report as report
from bench.views.reports import report_html
from bench.views.tables.table import Column, Table
from kernels.errors import InputError
from tests.bench import synthetic
from tests.bench.views.test_comparison_report import kept

pytestmark = pytest.mark.slow

VOID = {"meta"}
SAMPLES = Path(report.__file__).parents[2] / "results"


class Page(HTMLParser):
    """Whether every element is closed where it was opened; ids, links, words and tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.asked: list[str] = []
        self.words: list[str] = []
        self.tables: list[list[list[tuple[str, str | None]]]] = []
        self.loads: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [value for key, value in attrs if key == "id"]
        self.asked += [value[1:] for key, value in attrs if key.endswith("href") and value.startswith("#")]
        self.asked += re.findall(r"url\(#([^)]+)\)", " ".join(value or "" for _, value in attrs))
        self.loads += [
            value for key, value in attrs
            if key in ("src", "srcset", "data", "action", "href", "xlink:href") and not value.startswith("#")
        ]  # fmt: skip
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(("", found.get("data-v")))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" in self.open or "style" in self.open:
            return
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            text, value = self.tables[-1][-1][-1]
            self.tables[-1][-1][-1] = (text + data, value)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_a_report_of_each_kind_is_one_file_that_loads_nothing(kind, tmp_path: Path) -> None:
    sample = next(path for path in SAMPLES.glob("sample_*") if (path / kind.file).is_file())
    written = kind.part("report").write([sample], tmp_path / "it.html")
    assert written == [tmp_path / "it.html"]
    assert list(tmp_path.iterdir()) == written
    text = written[0].read_text("utf-8")
    page = Page(text)
    assert page.loads == []
    assert "@import" not in text
    assert set(re.findall(r"https?://[^\"\s<]+", text)) == {
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/2000/svg",
    }
    assert "default-src 'none'" in text
    assert len(page.ids) == len(set(page.ids))
    assert set(page.asked) <= set(page.ids)
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawings) == text.count("<figure>") > 1
    for drawing in drawings:
        ElementTree.fromstring(drawing)
        assert 'role="img"' in drawing
    assert 'class="strip"' in text
    assert page.tables
    assert all(len({len(line) for line in table}) == 1 for table in page.tables)
    assert "How it was measured" in page.text
    if kind.name == "ladder":  # the quickest
        again = kind.part("report").write([sample], tmp_path / "again.html")[0].read_text("utf-8")
        assert again == text


@pytest.mark.usefixtures("blank_pictures")
def test_the_strip_tells_the_verdict_in_the_same_words_and_tables_sort_by_figures(tmp_path: Path) -> None:
    data = synthetic.run(backends=("engine-cuda", "ort-cuda"), batches=(1, 16, 1024))
    page = Page(report.write([kept(tmp_path / "run", data)], tmp_path / "r.html")[0].read_text("utf-8"))
    shown = rows(data[1])
    from bench.views.sentences.verdicts import verdicts

    for verdict in verdicts(shown, [data[0]]):
        assert "".join(verdict.line.split()) in "".join(page.text.split())
    board, (head, *lines) = page.tables
    assert [text for text, _ in board[0]] == ["backend, by batch size", "1", "16", "1,024"]
    assert [line[0][0] for line in board[1:]] == ["engine-cuda", "ort-cuda, time"]
    ratios = [float(value or 0) for _, value in board[1][1:]]
    assert ratios == [row.speedup for row in shown if row.speedup is not None]
    at = [text for text, _ in head].index("median (95 % interval)")
    medians = [float(line[at][1] or 0) for line in lines]
    assert medians == [row.median_ns * 1e-9 for row in report.merge([data]).rows if row.median_ns]
    assert sorted(medians) != medians
    assert "Nothing: every case is ok" in page.text


@pytest.mark.usefixtures("blank_pictures")
def test_names_of_others_are_text_in_a_page(tmp_path: Path) -> None:
    run, measured = synthetic.run(batches=(1,), failures={("engine-cpu", 1): ("incorrect", EVIL)})
    run = msgspec.structs.replace(run, command=EVIL)
    text = report.write([kept(tmp_path / "run", (run, measured))], tmp_path / "r.html", None, EVIL)[
        0
    ].read_text("utf-8")
    page = Page(text)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert page.text.count("<script>alert(1)</script>") >= 4
    made = report_html.table(Table([Column("a", lambda r: r, left=True)], [EVIL, "**all** \\*"]))
    assert "<script>" not in made
    assert "<b>all</b> *" in made


EVIL = "</title></style><script>alert(1)</script><img src=//x onerror=alert(1)>\" 'x' {{ 7*7 }}"


def test_a_name_that_means_no_form_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = kept(tmp_path / "run", synthetic.run(batches=(1,)))
    for given, why in (
        (["--out", str(tmp_path / "r.pdf")], "one ends in .md (Markdown) or .html"),
        (["--out", str(tmp_path / "r")], "one ends in .md"),
        (["--html", "--out", str(tmp_path / "r.md")], "--html writes HTML"),
        (
            ["--out", str(tmp_path / "r.html"), "--charts", str(tmp_path / "c")],
            "the charts stand in the file",
        ),
        ([], "--out FILE.html, or give --html"),
    ):
        assert main.main(["runs", "report", str(run), *given]) == 2
        assert why in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.usefixtures("blank_pictures")
def test_without_a_name_html_lies_among_the_charts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = kept(tmp_path / "run", synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1,)))
    assert main.main(["runs", "report", str(run), "--html"]) == 0
    assert capsys.readouterr().out.strip() == str(run / "charts" / "report.html")
    assert COMPARISON.open(run).measurements()
    with pytest.raises(InputError, match="cannot"):
        report.write([run], tmp_path / "run" / "run.json" / "r.html")


SORTS = """
const rows = %s.map(([v, t]) => ({ cells: [{ dataset: v === null ? {} : { v }, textContent: t }], t }));
const button = { addEventListener: (_, act) => { button.act = act; } };
const head = { at: {}, querySelector: () => button, getAttribute: (n) => head.at[n] ?? null,
  setAttribute: (n, v) => { head.at[n] = v; }, removeAttribute: (n) => { delete head.at[n]; } };
const body = { rows, appendChild: (r) => { rows.splice(rows.indexOf(r), 1); rows.push(r); } };
const table = { tBodies: [body], querySelectorAll: () => [head] };
global.document = { querySelectorAll: () => [table] };
require(process.argv[1]);
const seen = () => rows.map((r) => r.t).join(" ");
button.act(); const up = seen(); button.act(); console.log(up + "|" + seen());
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run a page's script")
def test_a_click_sorts_by_value_and_what_has_none_stands_last() -> None:
    script = Path(report_html.__file__).parent / "templates" / "report.js"
    found = subprocess.run(
        [
            "node",
            "-e",
            SORTS % '[["0.002", "2ms"], [null, ""], ["1e-05", "10us"], ["0.3", "300ms"]]',
            str(script),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    up, down = found.stdout.rstrip("\n").split("|")
    assert up == "10us 2ms 300ms "
    assert down == "300ms 2ms 10us "


def test_a_figure_and_its_interval_stand_whole_on_two_lines() -> None:
    columns = [Column[str]("time", lambda row: row), Column[str]("why", lambda row: row * 9, left=True)]
    page = str(report_html.table(Table(columns, ["16.9 µs (15.1 µs to 20.0 µs)", "2.3e-08"])))
    assert '16.9 µs <span class="interval">(15.1 µs to 20.0 µs)</span></td>' in page
    style = (Path(report_html.__file__).parent / "templates" / "report.css").read_text()
    for which in (".interval", "td"):
        assert re.search(rf"^{re.escape(which)} {{[^}}]*white-space: nowrap", style, re.MULTILINE), which
    assert page.count('class="long"') == 2, "words that are many are wrapped, figures never"
    assert re.search(r"<td[^>]*>2\.3e-08</td>", page)


def test_a_sentence_shows_commands_as_commands_and_text_as_text() -> None:
    told = report_html.sentence("`a <b>` takes 24 % of 3.0 µs")
    assert str(told) == "<code>a &lt;b&gt;</code> takes 24\u00a0% of 3.0\u00a0µs"


def test_a_table_of_tiles_has_an_order_of_its_own() -> None:
    """Its rows hold now a ratio and now a time: sorted by a column they would stand in no order at all."""
    tiles = Table([Column[float]("1", lambda row: row, fill=lambda row, dark: "#112233")], [1.5, 2.0])
    assert "<button" not in str(report_html.table(tiles))
    assert "<button" in str(report_html.table(Table([Column[float]("1", lambda row: row)], [1.5, 2.0])))
