"""Goals that were set for one machine and measured on another: the heading and a note say so, truly."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.extras.reports import filled, needs
from bench.extras.reports.goals import machines, page, presets
from bench.extras.reports.goals.presets import Goals
from bench.extras.reports.needs import Taken
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views.reports import report_form
from tests.bench.synthetic import record

H200, H100 = "NVIDIA H200", "NVIDIA H100 80GB HBM3"
GOALS = presets.load("speed-h200")


def taken(folder: Path, *names: str, goals: Goals = GOALS) -> Taken:
    """Runs of GPUs of these names."""
    paths = []
    for number, name in enumerate(names):
        run = record([])
        environment = msgspec.structs.replace(run.environment, gpu=name)
        paths.append(folder / f"run-{number}")
        COMPARISON.create(paths[-1], msgspec.structs.replace(run, environment=environment)).close()
    return needs.given(paths)


def said(goals: Goals, found: Taken, title: str = "") -> tuple[str, tuple[str, ...]]:
    form = report_form.form_of(Path("it.md"))
    context = filled.context(page.page(goals, found, form), found, title)
    return context["heading"], context["page"].notes


def test_on_the_machine_that_they_were_set_for_nothing_is_added(tmp_path: Path) -> None:
    for found in (taken(tmp_path, H200), Taken()):
        assert said(GOALS, found) == (GOALS.title, GOALS.notes)


def test_on_another_the_title_and_a_note_name_it(tmp_path: Path) -> None:
    found = taken(tmp_path, H100, H100)
    title, notes = said(GOALS, found)
    assert title == f"Speed goals for one NVIDIA H200, measured on one {H100}"
    assert notes[0] == f"The goals were set for one H200; measured here on one {H100} (driver 580.65)."
    assert notes[1].startswith("All are held as they were set, though 6 that are times of a pass, and ratios")
    assert notes[1].endswith("for what one H200 can do.")
    assert notes[2:] == GOALS.notes
    assert said(GOALS, found, "Mine") == ("Mine", notes), "whoever names it is believed, and the note stays"
    text = page.write(GOALS, found, tmp_path / "it.md")[0].read_text("utf-8")
    assert text.splitlines()[0] == f"# {title}"


def test_on_several_each_is_named_and_the_note_is_of_the_others(tmp_path: Path) -> None:
    title, notes = said(GOALS, taken(tmp_path, H200, H100, ""))
    assert title.endswith(f"measured on one {H200} and one {H100} and {machines.UNKNOWN}")
    assert notes[0].startswith(f"The goals were set for one H200; measured here in part on one {H100} (")


@pytest.mark.parametrize(
    ("name", "fits"), [(H200, True), ("NVIDIA H200 NVL", True), ("NVIDIA GH200 480GB", False), (H100, False)]
)
def test_whole_words_of_a_name_count(name: str, fits: bool) -> None:
    assert machines.fits(GOALS, name) == fits
    assert machines.fits(presets.load("speed-cpu"), name), "those are of any machine"


def test_goals_of_any_machine_say_on_which_they_were_measured(tmp_path: Path) -> None:
    anywhere = msgspec.structs.replace(GOALS, machine="")
    title, notes = said(anywhere, taken(tmp_path, H100))
    day = record([]).created_at[:10]
    assert (title, notes[0]) == (GOALS.title, f"Measured on one {H100} (driver 580.65), {day}.")


def test_without_goals_that_are_times_the_note_speaks_of_none(tmp_path: Path) -> None:
    ratios = tuple(goal for goal in GOALS.goals if goal.value not in machines.OF_TIME)
    goals = msgspec.structs.replace(GOALS, goals=ratios)
    _, notes = said(goals, taken(tmp_path, H100))
    assert notes[1] == (
        "All are held as they were set, though ratios of what memory bounds ask for what one H200 can do."
    )
