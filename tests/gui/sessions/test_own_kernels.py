"""Which of the user's rungs are run again after a save, and how long a run has gone on."""

from pathlib import Path

from bench.questions.ladder_questions import KernelProblem, LadderAnswer, RungInfo
from bench.results.ladder_records import RungCase
from gui.sessions.own_kernels import OwnKernels
from gui.sessions.session import RunClock

OURS = RungInfo(RungCase(rung="ours", number=1), "1_ours.py", "ours")


def answer(*texts, problems=()):
    own = (
        RungInfo(RungCase(rung=f"mine{i}", number=90 + i, user=True), f"9{i}_mine.py", text)
        for i, text in enumerate(texts)
    )
    return LadderAnswer(number=1, rungs=(OURS, *own), problems=problems)


def test_what_was_saved_is_due_once_and_nothing_else():
    own = OwnKernels()
    assert own.look(answer("a", "b"), last=True) is None, "they were there from the start"
    own.saved([Path("90_mine.py")])
    assert own.look(answer("A", "b"), last=True) == ("mine0",)
    cases = [info.case for info in answer("A", "b").rungs]
    assert [case.rung for case in own.take(cases)] == ["mine0"]
    assert own.take(cases) == ()
    assert own.look(answer("A", "b"), last=True) is None


def test_where_only_a_shared_header_was_saved_all_of_the_user_s_are_due():
    own = OwnKernels()
    own.look(answer("a", "b"), last=True)
    own.saved([Path("helpers.cuh")])
    assert own.look(answer("a", "b"), last=True) == ("mine0", "mine1")


def test_a_file_that_is_no_rung_is_shown_and_what_joins_a_folder_is_due():
    own = OwnKernels()
    own.look(answer("a"), last=True)
    own.saved([Path("91_mine.py")])
    broken = (KernelProblem("91_mine.py", "no header"),)
    assert own.look(answer("a", problems=broken), last=False) == ()
    assert own.look(answer("a", "b"), last=True) == ("mine1",), "an answer that was still to come brings it"
    own.added("Your kernels were run")
    assert own.look(answer("a", "b", "c"), last=True) == ("mine2",)
    assert own.words == "Your kernels were run"


def test_a_run_s_clock_leaves_pauses_out():
    now = 0.0
    clock = RunClock(lambda: now)
    clock.restart()
    now = 10.0
    assert clock.seconds == 10.0
    clock.stop()
    now = 100.0
    clock.stop()
    assert clock.seconds == 10.0
    clock.go_on()
    now = 110.0
    assert clock.seconds == 20.0
