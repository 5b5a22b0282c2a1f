"""The process that plans ladders: it gives its memory back, and a later question is answered all the same."""

import sys

import pytest
from PySide6.QtWidgets import QWidget

from bench.ladder.questions import LadderQuestion
from gui.sessions import ladder_describer
from gui.sessions.ladder_describer import LadderDescriber

ANSWERS = """
import json
import sys
for line in sys.stdin:
    number = json.loads(line)["number"]
    print(json.dumps({"type": "ladder_answer", "number": number}), flush=True)
"""


@pytest.fixture
def describer(qtbot, monkeypatch):
    monkeypatch.setattr(ladder_describer, "IDLE_MS", 50)
    owner = QWidget()
    qtbot.addWidget(owner)
    made = LadderDescriber(owner, command=[sys.executable, "-c", ANSWERS])
    yield made
    made.quit()


def test_it_ends_when_nothing_is_asked_and_begins_anew(qtbot, describer):
    for number in (1, 2):
        with qtbot.waitSignal(describer.answered) as told:
            describer.ask(LadderQuestion(number=0, model="lenet5-digits"))
        assert told.args[0].number == number
        qtbot.waitUntil(lambda: describer._process is None)
        assert not describer.busy


def test_it_stays_while_questions_come(qtbot, describer):
    with qtbot.waitSignal(describer.answered):
        describer.ask(LadderQuestion(number=0, model="lenet5-digits"))
    first = describer._process.id
    with qtbot.waitSignal(describer.answered):
        describer.ask(LadderQuestion(number=0, model="lenet5-digits"))
    assert describer._process.id == first
