"""What a report is written as: Markdown with pictures beside it, or one HTML file that holds everything and
asks no network for anything.

A report hands over charts and tables as data; here they become links and pipe tables, or drawings inside the
page and tables that sort.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.results.store import write_atomically
from bench.views.drawing import looks
from bench.views.drawing.looks import PAGE, Look
from bench.views.reports import report_files, report_html
from bench.words.called import CALLED
from kernels.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Environment

    from bench.views.charts.definitions import Chart

MARKDOWN, HTML = (".md", ".markdown"), (".html", ".htm")
DEFAULT_NAME = "report.html"  # in the folder of a run's charts


@dataclass(frozen=True)
class Picture:
    """A picture as a report shows it. where: its link, or in HTML the drawing itself; words: what else is to
    be said of it, where it does not say so itself."""

    title: str
    where: str
    words: tuple[str, ...] = ()


class ReportForm(ABC):
    """One report in the making; `write` ends it."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def chart(self, chart: Chart, stem: str) -> Picture:
        """A chart; its file, where it gets one, is named after `stem`."""
        from bench.views.drawing import draw

        made = self.drawing(
            chart.title, stem, lambda kind, look: draw.render(chart, (kind,), 1.0, look)[kind]
        )
        assert made is not None
        return Picture(made.title, made.where, self._words(chart))

    @abstractmethod
    def drawing(self, title: str, stem: str, draw: Callable[[str, Look], bytes]) -> Picture | None:
        """A picture that `draw` makes in a format; None where it makes none."""

    @abstractmethod
    def write(self, name: str, context: dict[str, Any]) -> list[Path]:
        """Write the report by the template `name`; what was written, the report first."""

    def _words(self, chart: Chart) -> tuple[str, ...]:
        return ()


class MarkdownReport(ReportForm):
    """Pictures are PNG, small, in a folder beside it."""

    def __init__(self, out: Path, charts: Path | None = None, most_nbytes: int = 0) -> None:
        super().__init__(out)
        self._pictures = report_files.ReportPictures(
            charts or out.parent / out.stem, most_nbytes or report_files.MAX_CHART_NBYTES
        )
        self._written: list[Path] = []

    def drawing(self, title: str, stem: str, draw: Callable[[str, Look], bytes]) -> Picture | None:
        data = draw("png", PAGE)
        if not data:
            return None
        path = self._pictures.save(stem, data)
        self._written.append(path)
        return Picture(title, report_files.link(path, self.out))

    def write(self, name: str, context: dict[str, Any]) -> list[Path]:
        write_atomically(self.out, rendered(name, context).encode())
        return [self.out, *dict.fromkeys(self._written)]


class HtmlReport(ReportForm):
    """All in one file; what is drawn says what the page does not."""

    LOOK = Look(title=False, finding=False, footer=False)

    def __init__(self, out: Path) -> None:
        super().__init__(out)
        self._count = 0

    def drawing(self, title: str, stem: str, draw: Callable[[str, Look], bytes]) -> Picture | None:
        data = draw("svg", self.LOOK)
        if not data:
            return None
        self._count += 1
        return Picture(title, report_html.inline(data.decode(), f"d{self._count}-", title))

    def write(self, name: str, context: dict[str, Any]) -> list[Path]:
        write_atomically(self.out, rendered(name, context, report_html.templates()).encode())
        return [self.out]

    def _words(self, chart: Chart) -> tuple[str, ...]:
        drawn = looks.notes(chart, self.LOOK)
        return tuple(filter(None, (chart.finding, *(note for note in chart.notes if note not in drawn))))


def rendered(name: str, context: dict[str, Any], among: Environment | None = None) -> str:
    """A report's text by its template, in Markdown unless templates of another form are given."""
    found = among or report_files.templates()
    ending = "html" if among is not None else "md"
    return found.get_template(f"{name}.{ending}.j2").render({"called": CALLED} | context)


def form_of(out: Path, charts: Path | None = None, most_nbytes: int = 0) -> ReportForm:
    """The form that the file's ending means. Raises InputError for one that no report has."""
    ending = out.suffix.lower()
    if ending in HTML:
        if charts is not None:
            raise InputError(f"--charts is of a report in Markdown: in {out} the charts stand in the file")
        return HtmlReport(out)
    if ending not in MARKDOWN:
        raise InputError(f"{out} is no file of a report; one ends in .md (Markdown) or .html")
    return MarkdownReport(out, charts, most_nbytes)


def file_of(out: Path | None, html: bool, run: Path) -> Path:
    """The file that is meant: `out`, or where HTML is asked for, one among the run's charts. Raises
    InputError where neither says it, or both contradict each other."""
    if out is None:
        if not html:
            raise InputError("name the report's file by --out FILE.md or --out FILE.html, or give --html")
        return run / "charts" / DEFAULT_NAME
    if html and out.suffix.lower() not in HTML:
        raise InputError(f"--html writes HTML and {out} is not named so; name it .html, or leave --html away")
    return out
