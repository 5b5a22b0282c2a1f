"""A report's HTML: tables that sort, drawings inside the page, texts that are text.

The page carries its style and its few lines of script, and says by a policy that it may load nothing. Names
and reasons in it may come from anybody: everything is escaped but what is made here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bench.views.reports import report_files
from bench.words import palette, plain

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from bench.views.tables.table import Column, Table

_HEAD = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_STYLE = re.compile(r"\s*<style type=\"text/css\">\*\{[^}]*\}</style>")  # of all of the page, which has it
_ID = re.compile(r'\bid="([^"]*)"')
_USED = re.compile(r'(xlink:href="#|url\(#)')
_SIZE = re.compile(r'<svg\b([^>]*?)\swidth="([\d.]+)pt"([^>]*)>')
_HEIGHT = re.compile(r'\sheight="[\d.]+pt"')
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_EMPHASIS = re.compile(r"(?<![\\*])\*([^*\s](?:[^*]*[^*\s\\])?)\*")
_LINK = re.compile(r"\[([^\]]+)\]\((#[\w-]+)\)")
_QUOTED = re.compile(r"\\([\\`*_\[\]<>|#~])")
_CODE = re.compile(r"`([^`]+)`")
_UNIT = re.compile(r"(?<=\d) (?=%|[nµm]?s\b|[KMGT]?i?B\b|[kMGT]\b)")
_INTERVAL = re.compile(r"^([^()]+) (\([^()]+ to [^()]+\))$")
LONG = 32  # characters of a cell: more are wrapped, fewer stay on one line


def inline(svg: str, prefix: str, title: str) -> Markup:
    """A drawing of ours as a part of a page: its names its own, as wide as there is room."""
    from markupsafe import Markup, escape

    text = _HEAD.sub("", svg, count=1)
    text = _STYLE.sub("", _METADATA.sub("", text))
    text = _ID.sub(rf'id="{prefix}\1"', text)
    text = _USED.sub(rf"\1{prefix}", text)
    said = f'role="img" aria-label="{escape(plain.printable(title))}"'

    def sized(found: re.Match[str]) -> str:
        points = float(found[2])
        rest = _HEIGHT.sub("", found[1] + found[3])
        return f'<svg{rest} {said} style="max-width:{points * 4 / 3:.0f}px">'

    return Markup(_SIZE.sub(sized, text, count=1).strip())


def sentence(text: str) -> Markup:
    """A sentence, escaped: commands in it look like commands, and no figure is broken from its unit."""
    from markupsafe import Markup, escape

    escaped = str(escape(" ".join(plain.printable(text).split())))
    return Markup(_CODE.sub(r"<code>\1</code>", _UNIT.sub("\u00a0", escaped)))


def prose(text: str) -> Markup:
    """Our own words, escaped already, with the few marks of Markdown that they have: its paragraphs."""
    from markupsafe import Markup

    marked = _LINK.sub(r'<a href="\2">\1</a>', str(text))
    marked = _QUOTED.sub(r"\1", _EMPHASIS.sub(r"<em>\1</em>", _STRONG.sub(r"<b>\1</b>", marked)))
    return Markup("\n".join(f"<p>{part.strip()}</p>" for part in marked.split("\n\n") if part.strip()))


def cell(text: str) -> Markup:
    """What stands in a cell, in which a table of Markdown has bold words and quoted asterisks."""
    from markupsafe import Markup, escape

    escaped = str(escape(" ".join(plain.printable(text).split())))
    return Markup(_QUOTED.sub(r"\1", _STRONG.sub(r"<b>\1</b>", escaped)))


def _figure(text: str) -> str:
    """A cell's text with the interval that a figure has on a line of its own, so that neither is broken."""
    return _INTERVAL.sub(r'\1 <span class="interval">\2</span>', str(cell(text)))


def part(sentences: Iterable[str], tables: Iterable[Table[Any]]) -> str:
    """A part of somebody's page, without a style or a script of its own."""
    from markupsafe import escape

    said = "".join(f"<p>{sentence(text)}</p>\n" for text in sentences)
    shown = "".join(
        f"<p><b>{escape(one.title)}</b></p>\n" * bool(one.title) + f"{table(one, sorts=False)}\n"
        for one in tables
    )
    return f'<div class="kernelscope">\n{said}{shown}</div>\n'


def table(made: Table[Any], sorts: bool = True) -> Markup:
    """A table of the columns that tell something. sorts: a click on a heading sorts it by what a column
    holds; one of tiles, whose rows hold now a ratio and now a time, has an order of its own."""
    from markupsafe import Markup, escape

    columns = made.telling().columns
    sorts = sorts and all(column.fill is None for column in columns)
    begin, end = ('<button type="button">', "</button>") if sorts else ("", "")
    heads = "".join(
        f'<th scope="col"{_flush(column)}{_tip(column)}>{begin}{escape(column.heading)}{end}</th>'
        for column in columns
    )
    kind = ' class="sorts"' if sorts else ""
    lines = ("<tr>" + "".join(_cell(column, row) for column in columns) + "</tr>\n" for row in made.rows)
    return Markup(
        f'<div class="wide"><table{kind}><thead><tr>{heads}</tr></thead>\n<tbody>\n'
        f"{''.join(lines)}</tbody></table></div>"
    )


def _cell(column: Column[Any], row: Any) -> str:
    from markupsafe import escape

    value = _own(column, row)
    order = ""
    if isinstance(value, (bool, int, float)):
        order = f' data-v="{float(value)!r}"'
    reasons = "; ".join(column.reasons(row).splitlines())
    why = f' title="{escape(plain.printable(reasons))}"' if reasons else ""
    shown = column.shown(row)
    kinds = " ".join(["doubt"] * bool(column.doubted(row)) + ["long"] * (len(shown) > LONG))
    why += f' class="{kinds}"' if kinds else ""
    fill = column.fill(row, False) if column.fill is not None else ""
    look = f' style="background:{fill};color:{palette.ink_on(fill)}"' if fill else ""
    return f"<td{_flush(column)}{order}{why}{look}>{_figure(shown)}</td>"


def _own(column: Column[Any], row: Any) -> Any:
    """The value behind a column that only has words for it, where there is one."""
    try:
        return column.of(row)
    except (AttributeError, KeyError, TypeError):
        return None


def _flush(column: Column[Any]) -> str:
    """How its cells stand: words to the left, those with colours in the middle, else to the right."""
    return ' data-left=""' if column.left else ' data-tile=""' if column.fill is not None else ""


def _tip(column: Column[Any]) -> str:
    from markupsafe import escape

    return f' title="{escape(column.tip)}"' if column.tip else ""


def titled(made: Table[Any] | Iterable[Table[Any]], level: int = 2) -> Markup:
    """Tables below their headings and notes."""
    from markupsafe import Markup, escape

    from bench.views.tables.table import Table

    parts = []
    for one in [made] if isinstance(made, Table) else made:
        notes = "".join(f'<p class="note">{cell(note)}</p>\n' for note in one.notes)
        parts.append(f"<h{level}>{escape(one.title)}</h{level}>\n{notes}{table(one)}")
    return Markup("\n".join(parts))


def templates() -> Environment:
    """The reports' templates in HTML: what is not made here is escaped."""
    return report_files.with_filters(
        escaped=True,
        plain=lambda text: " ".join(plain.printable(str(text)).split()),
        told=lambda text: plain.printable(str(text)),
        table=table,
        titled=titled,
        prose=prose,
        sentence=sentence,
        cell=cell,
    )
