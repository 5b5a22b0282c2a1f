"""Questions to a process of its own: the last one is answered, and no process stays for nothing."""

import sys

import pytest
from PySide6.QtWidgets import QWidget

from bench.questions.ladder_questions import LadderAnswer, LadderQuestion
from gui.sessions.asker import Asker
from gui.sessions.child import ChildProcess

# The answer has the question's number, and the process that gave it.
ANSWERS = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["model"] == "mute":
        continue
    if asked["model"] == "dies":
        print("no such model", file=sys.stderr, flush=True)
        os._exit(3)
    if asked["model"] == "gives up":
        print(json.dumps({"type": "done", "reason": "there is no kernel"}), flush=True)
        continue
    print(json.dumps({"type": "progress", "text": "half of it"}), flush=True)
    print("and what is no message", flush=True)
    answer = {"type": "ladder_answer", "number": asked["number"], "created": str(os.getpid())}
    print(json.dumps(answer), flush=True)
"""


def question(number, model="lenet5-digits"):
    return LadderQuestion(number=number, model=model)


@pytest.fixture
def make(qtbot):
    owner = QWidget()
    qtbot.addWidget(owner)
    made = []

    def make(**times):
        made.append(Asker([sys.executable, "-c", ANSWERS], LadderAnswer, owner, **times))
        return made[-1]

    yield make
    for asker in made:
        asker.quit()


def ended(asker):
    return not asker.findChildren(ChildProcess)


def test_one_that_keeps_its_process_ends_it_when_nothing_is_asked_and_begins_anew(qtbot, make):
    asker = make(idle_ms=50)
    for number in (1, 2):
        with qtbot.waitSignal(asker.answered) as told:
            asker.ask(question(number))
        assert (told.args[0], told.args[1].number) == (question(number), number)
        assert not asker.busy
        qtbot.waitUntil(lambda: ended(asker))


def test_it_stays_while_questions_come_and_of_those_that_wait_the_last_is_answered(qtbot, make):
    asker = make(idle_ms=60_000)
    heard = []
    asker.answered.connect(lambda _, answer: heard.append(answer))
    for number in (1, 2, 3):
        asker.ask(question(number))
    qtbot.waitUntil(lambda: len(heard) == 2)
    assert [answer.number for answer in heard] == [1, 3], "what is asked already is answered"
    assert heard[0].created == heard[1].created, "by one process"


def test_without_a_kept_process_each_question_takes_the_place_of_the_one_before(qtbot, make):
    asker = make(wait_ms=20)
    heard = []
    asker.answered.connect(lambda _, answer: heard.append(answer.number))
    asker.ask(question(1), now=True)
    asker.ask(question(2))
    assert asker.busy
    asker.ask(question(3))
    qtbot.waitUntil(lambda: bool(heard))
    assert heard == [3]
    qtbot.waitUntil(lambda: ended(asker))
    assert not asker.busy


@pytest.mark.parametrize("idle_ms", [0, 60_000])
@pytest.mark.parametrize(
    ("model", "why"),
    [("dies", "the process ended with exit code 3: no such model"), ("gives up", "there is no kernel")],
)
def test_why_there_is_no_answer_is_told_and_the_next_question_is_answered(qtbot, make, model, why, idle_ms):
    asker = make(idle_ms=idle_ms)
    with qtbot.waitSignal(asker.failed) as told:
        asker.ask(question(1, model))
    assert told.args == [question(1, model), why]
    assert not asker.busy
    with qtbot.waitSignal(asker.answered):
        asker.ask(question(2))


def test_one_that_takes_too_long_is_given_up(qtbot, make):
    asker = make(limit_ms=1000)
    with qtbot.waitSignal(asker.failed) as told:
        asker.ask(question(1, "mute"))
    assert told.args[1] == "it took more than 1 s and was given up"
    qtbot.waitUntil(lambda: ended(asker))


def test_what_cannot_be_started_is_told(qtbot):
    asker = Asker(["/no/such/program"], LadderAnswer)
    with qtbot.waitSignal(asker.failed) as told:
        asker.ask(question(1))
    assert told.args[1].startswith("no process could be started: ")
