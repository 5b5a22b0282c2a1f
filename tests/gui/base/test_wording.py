"""What the command line calls by an option, the window calls by the field that sets it."""

import pytest

from bench.run import options
from bench.words.called import CALLED
from gui.base.wording import LABELS, in_window
from gui.widgets.controls import Label, as_tip


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("only 5 samples fit; a larger --budget helps", "only 5 samples fit; a larger “Time” helps"),
        ("it needs a larger --timeout", "it needs a larger “Time limit”"),
        ("damaged: --resume measures it again", "damaged: “Resume” measures it again"),
        ("give its size by --dim batch=1", "give its size by “Axes” batch=1"),
        ("`--budget 3` is a command's", "`--budget 3` is a command's"),
        (f"{CALLED} compare --budget 3", f"{CALLED} compare --budget 3"),
        ("--shape has no field, a -- b neither", "--shape has no field, a -- b neither"),
    ],
)
def test_an_option_is_called_by_its_field(said, shown):
    assert in_window(said) == shown


def test_every_label_and_tip_says_it_so(qtbot):
    label = Label("a larger --budget helps")
    qtbot.addWidget(label)
    assert label.text() == as_tip("a larger --budget helps") == "a larger “Time” helps"
    labelled = {option.name for listed in options.TABLE.values() for option in listed if option.label}
    assert labelled < LABELS.keys()
