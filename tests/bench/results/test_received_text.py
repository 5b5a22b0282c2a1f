"""Text of records is text: to a terminal, to rich, to Markdown and to a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import main
from bench.results.folders import open_folder
from bench.results.store import RESULTS_FILE
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.words import plain
from tests.bench.results import received
from tests.bench.results.test_folders import ladder, profile, run

pytestmark = pytest.mark.slow

ESCAPES = "\x1b[2J\x1b]0;owned\x07 \x9b31m \r gone \u202egnp.exe \x7f"
RICH = "[red]red[/red] [link=file:///etc/passwd]x[/link] :skull:"
HOSTILE = f"{RICH} <b>b</b> | ![x](http://e.vil/x) {ESCAPES}"
LINK = re.compile(r"(?<!\\)\]\(http")


def told(reason: str) -> Any:
    """Every case of a record fails for this reason."""

    def change(line: Any) -> None:
        line.pop("sum", None)
        line.update(disposition="failed", reason=reason)

    return change


def planted(make: Any, path: Path, reason: str = HOSTILE) -> Path:
    make(path)
    lines = [msgspec.json.decode(line) for line in (path / RESULTS_FILE).read_bytes().splitlines()]
    for line in lines:
        told(reason)(line)
    (path / RESULTS_FILE).write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    (file,) = path.glob("*.json")
    received.changed(
        path,
        lambda held: held.update(command=HOSTILE, environment=held.get("environment", {}) | {"cpu": HOSTILE}),
        file.name,
    )
    return path


def tame(text: str) -> bool:
    return not any(c in text for c in "\x1b\x07\x9b\r\u202e\x7f")


@pytest.mark.parametrize("make", [run, ladder, profile])
@pytest.mark.parametrize("form", ["table", "csv", "md", "json"])
def test_what_is_shown_orders_nothing(
    tmp_path: Path, make: Any, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = planted(make, tmp_path / "run")
    assert main.main(["runs", "show", str(path), "--format", form]) == 0
    out, err = capsys.readouterr()
    assert tame(out)
    assert tame(err)
    if form == "table":
        assert "[red]" in " ".join(out.split()), "shown, and not obeyed"
        assert main.main(["runs", "list", str(tmp_path)]) == 0
        assert tame(capsys.readouterr().out)
    if form == "md":
        assert not LINK.search(out)
        rows = [line for line in out.splitlines() if line.startswith("|")]
        assert rows or make is profile, "one whose cases all failed has no table"
        assert all(line.endswith("|") for line in rows)
        assert "<b>" not in out.replace("\\<b>", "")


def test_a_message_of_an_error_orders_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "evil\x1b[31m"
    assert main.main(["runs", "show", str(folder)]) == 2
    assert tame(capsys.readouterr().err)


@pytest.mark.usefixtures("blank_pictures")
def test_a_report_holds_no_html_and_no_further_links(tmp_path: Path) -> None:
    path = planted(run, tmp_path / "run")
    assert main.main(["runs", "report", str(path), "--out", str(tmp_path / "report.md")]) == 0
    text = (tmp_path / "report.md").read_text()
    assert tame(text)
    # The command stands in a block of code, which is shown as it is.
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert "<b>" not in prose.replace("\\<b", "")
    assert not LINK.search(prose)


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", '=HYPERLINK("http://e.vil")'])
def test_a_spreadsheet_computes_nothing(
    tmp_path: Path, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = planted(run, tmp_path / "run", start)
    assert main.main(["runs", "show", str(path), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["reason"] for row in rows} == {f"'{start}"}
    assert all(float(row["batch"]) > 0 for row in rows), "a number stays one"
    assert plain.csv(-1.5) == -1.5
    assert plain.csv(None) is None


def test_json_is_cleaned_of_control_characters_and_of_nothing_else() -> None:
    kept = {"a": "C:\\runs\\b", "tab": "a\tb\nc", "é": "× µ “”", "u": "\\u001b", "x": "\\\\r"}
    assert msgspec.json.decode(plain.json(msgspec.json.encode(kept))) == kept
    for escaped in (b'"\\u001b"', b'"\\u001B"', b'"\\r"', b'"\\\\\\u009b"', b'"\\u202E"', b'"\\b"', b'"\\f"'):
        assert tame(msgspec.json.decode(plain.json(escaped))), escaped
    for raw in ("\x7f", "\x9b", "\u202e", "\u2066"):
        assert msgspec.json.decode(plain.json(f'"a{raw}b"'.encode())) == "a\ufffdb"


def test_a_record_that_was_opened_says_nothing_but_text(tmp_path: Path) -> None:
    folder: Any = open_folder(planted(run, tmp_path / "run"))
    assert tame(folder.header.command)
    assert tame(folder.header.environment.cpu)
    assert all(tame(made.reason) for made in folder.measurements())
    assert (tmp_path / "run" / COMPARISON.file).is_file()
