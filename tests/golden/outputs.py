"""The commands, and what each of them leaves."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import main

ROOT = Path(main.__file__).parent
RUNS = ROOT / "tests" / "golden" / "runs"
SHIPPED = ROOT / "bench" / "results"
OLDER = ROOT / "tests" / "data"
OUT = "out"  # the folder that a command writes to
WIDTH = 112  # of the terminal, in columns


@dataclass(frozen=True)
class Command:
    """words: after `main.py`, over folders by their name in FOLDERS; `out` stands for a fresh folder."""

    name: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


COMPARISONS = {"before": RUNS / "before", "after": RUNS / "after", "sample-run": SHIPPED / "sample_run"}
COMPARISONS["two-models"] = OLDER / "two_models"
LADDERS = {"ladder": RUNS / "ladder", "sample-ladder": SHIPPED / "sample_ladder"}
LADDERS["two-cores"] = OLDER / "conv_on_two_cores"
PROFILES = {"profile": RUNS / "profile", "sample-profile": SHIPPED / "sample_profile"}
PROFILES |= {name: OLDER / name for name in ("lenet_on_h200", "lenet_on_two_cores")}
FOLDERS = {**COMPARISONS, **LADDERS, **PROFILES}
DRAWN = ("before", "ladder", "profile")  # whose reports are made as well: drawing takes seconds


def commands() -> list[Command]:
    """All of them, each under a name of its own."""
    made = {}
    for folder in FOLDERS:
        for form in ("table", "json", "md", "csv"):
            made[f"show-{folder}-{form}"] = ("runs", "show", folder, "--format", form)
        made[f"export-{folder}"] = ("export", folder, "--charts", "csv", "--csv", "--out", OUT)
    for folder in COMPARISONS:
        made[f"layers-{folder}"] = ("runs", "show", folder, "--layers", "--format", "md")
        made[f"bisect-{folder}"] = ("runs", "show", folder, "--bisect", "--format", "md")
    for name, pair in {
        "comparisons": ("before", "after"),
        "ladders": ("ladder", "ladder"),
        "profiles": ("profile", "profile"),
    }.items():
        for form in ("table", "json", "md", "csv", "junit"):
            made[f"diff-{name}-{form}"] = ("runs", "diff", *pair, "--format", form)
    for folder in DRAWN:
        for ending in ("md", "html"):
            made[f"report-{folder}-{ending}"] = ("runs", "report", folder, "--out", f"{OUT}/report.{ending}")
    return [Command(name, words) for name, words in made.items()]


def output(command: Command, folder: Path) -> str:
    """What the command prints, and the files of words that it writes, in a fresh folder."""
    words = [
        str(FOLDERS.get(word, word)) if word != OUT and not word.startswith(f"{OUT}/") else str(folder / word)
        for word in command.words
    ]
    printed, said = io.StringIO(), io.StringIO()
    settings = {"COLUMNS": str(WIDTH), "TZ": "UTC", "NO_COLOR": "1", "TERM": "dumb"}
    with (
        mock.patch.dict(os.environ, settings),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(said),
    ):
        code = main.main(words)
    pieces = [f"$ {' '.join(command.words)}\nexit code {code}\n{printed.getvalue()}"]
    pieces += [f"== {name}\n{text}" for name, text in _written(folder / OUT)]
    return "\n".join(_plain(piece, folder) for piece in pieces)


def _written(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.suffix in {".csv", ".md", ".html", ".json", ".txt"}:
            yield path.relative_to(folder).as_posix(), path.read_text()
        elif path.is_file():
            yield path.relative_to(folder).as_posix(), "(not compared)\n"


def _plain(text: str, folder: Path) -> str:
    """Without what depends on the machine that reads it."""
    text = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"<svg\b.*?</svg>", _words_of, text, flags=re.DOTALL)
    text = re.sub(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]+", "(a picture)", text)
    return text.replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT")


def _words_of(found: re.Match[str]) -> str:
    return "\n".join(re.findall(r"<(?:text|title|desc)\b[^>]*>(.*?)</", found[0], flags=re.DOTALL))
