"""Texts and lines stand out from what they are drawn on, in every theme and on paper."""

import itertools

import numpy as np
import pytest

from bench.views.charts.ladder_charts import KINDS
from bench.words import palette
from gui.base.theme import THEMES, Theming, sheet
from gui.pages.ladder.error_map import ErrorMapView
from gui.plots.base import standing_out
from gui.widgets.colour_scale import RAMPS

TEXT, LINE = 4.5, 3.0
DRAWN = {**palette.BACKENDS, **palette.VARIANTS, **palette.RIVALS, "user": palette.USER}


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_every_text_stands_out(theme):
    texts = ("ink", "muted", "failed", "warning", "good", "accent")
    for text, under in itertools.product(texts, ("window", "paper", "alternate", "button")):
        assert palette.contrast(getattr(theme, text), getattr(theme, under)) >= TEXT, (text, under)
    assert palette.contrast(theme.on_accent, theme.accent) >= TEXT
    assert palette.contrast(theme.muted, theme.grid) >= TEXT, "the name of the failures' lane"


def test_what_cannot_be_used_is_read_and_does_not_look_as_if_it_could():
    theme = THEMES["contrast"]
    for under in ("window", "alternate"):
        off = palette.contrast(theme.off, getattr(theme, under))
        assert TEXT <= off <= palette.contrast(theme.ink, getattr(theme, under)) / 2
    disabled = [line for line in sheet(theme).split("}") if ":disabled" in line and "Button" in line]
    assert len(disabled) == 3
    assert all("dashed" in line and theme.off in line for line in disabled), "not by colour alone"


@pytest.mark.parametrize("paper", [theme.paper for theme in THEMES.values()])
def test_every_backend_s_line_stands_out(paper):
    for name, colour in [*DRAWN.items(), *enumerate(palette.OTHERS)]:
        assert palette.contrast(colour, paper) >= LINE, name


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_the_line_of_a_reference_in_any_precision_stands_out(theme):
    for colour in filter(None, (colour for _, colour in KINDS.values())):
        seen = standing_out(colour, theme)
        assert palette.contrast(seen, theme.paper) >= LINE
        if palette.contrast(colour, theme.paper) >= LINE:
            assert seen.upper() == colour.upper(), "what is seen anyway stays what it is"


def test_what_is_written_on_paper_stands_out():
    for ink in (palette.INK, palette.MUTED, palette.FAILED, palette.DOUBT):
        assert palette.contrast(ink, "#FFFFFF") >= TEXT


def test_both_inks_can_be_read_on_every_colour_of_every_scale():
    """The middle of the dark scale of times had dark words on brown."""
    for ramps in RAMPS.values():
        for ramp in ramps:
            for step in range(101):
                fill = palette.blend(ramp, step / 100)
                for ink in (palette.ink_on(fill), palette.faint_on(fill)):
                    assert palette.contrast(ink, fill) >= TEXT, (ramp, step)


def test_a_signed_scale_is_lightest_or_darkest_in_its_middle():
    for theme in THEMES.values():
        ramp = RAMPS["signed"][theme.dark]
        away = [palette.contrast(colour, theme.paper) for colour in ramp]
        middle = len(ramp) // 2
        assert away.index(min(away)) == middle
        assert away[0] > away[1] > away[2] < away[3] < away[4]


def test_values_with_a_sign_have_nothing_in_the_middle_of_their_scale(qtbot):
    view = ErrorMapView(Theming("light"))
    qtbot.addWidget(view)
    values = np.array([[-1.0, 0.0], [0.5, 3.0]])
    view._scaled("expected", values, "Expected", -1.0, 3.0)
    scale = view.panels["expected"].legend.scale
    assert (scale.kind, scale.fraction(0.0)) == ("signed", 0.5)
    assert scale.colour(0.0).name().upper() == RAMPS["signed"][0][2]
    view._scaled("got", np.abs(values), "Got", 0.0, 3.0)
    assert view.panels["got"].legend.scale.kind == "time"


def test_no_two_backends_of_a_comparison_are_nearly_of_one_colour():
    for one, other in itertools.combinations(palette.BACKENDS.values(), 2):
        apart = [int(one[i : i + 2], 16) - int(other[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.hypot.reduce(apart) > 80, (one, other)


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_what_takes_the_keyboard_and_what_a_notice_is_stand_out(theme):
    for edge in (theme.accent, theme.failed, theme.warning, theme.muted):
        assert palette.contrast(edge, theme.window) >= LINE
    if theme.name == "contrast":  # as WCAG asks of its strictest level
        for text in (theme.ink, theme.muted, theme.failed, theme.warning, theme.good, theme.accent):
            for under in (theme.window, theme.paper, theme.alternate, theme.button):
                assert palette.contrast(text, under) >= 7
