"""Every version of a rung of the user's is kept with what it came to: seen as a curve, held against another,
written back, and known to a ladder that is opened again."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from bench.questions.ladder_questions import LadderQuestion, RungInfo
from bench.results import saves
from bench.run.kinds.ladder import KIND as LADDER
from gui.base.theme import Theming
from gui.pages.ladder.history import LEAVE, WRITE, HistoryView
from gui.sessions.ladder_session import LadderState
from gui.sessions.own_saves import OwnSaves
from tests.bench.ladder.test_ladder_folders import example
from tests.bench.ladder.test_saves import version
from tests.gui.answering import Answers


def logged(folder, texts=("a\nb\n", "a\nc\n", "broken\n", "a\nd\n")):
    """A log of versions, the third of them wrong; and the ladder, the case."""
    ladder, found = example()
    case = next(m.case for m in found if m.case.user)
    log = saves.SaveLog(folder)
    for text, us in zip(texts, (100, 50, 0, 80), strict=True):
        now = version(case, us) if us else version(case, 0, "incorrect", reason="the bias is missing")
        log.note(ladder, [case], {case.key: now}, {case.rung: text})
    return ladder, case


def differs(diff):
    """The lines that each side alone has."""
    left, right = ({line.text for line in view.lines} for view in (diff.left, diff.right))
    return "".join(left - right), "".join(right - left)


def test_versions_are_seen_compared_and_written_back(qtbot, tmp_path):
    _, case = logged(tmp_path)
    file = tmp_path / "90_mine.py"
    file.write_text("a\nd\n")
    found = saves.read(tmp_path)
    view = HistoryView(Theming("light"))
    qtbot.addWidget(view)
    view.resize(700, 600)
    view.show()
    view.show_history(RungInfo(case, str(file), "a\nd\n"), found)
    verdicts = [row.verdict for row in view.table.source.rows]
    assert verdicts == ["lost", "incorrect", "gained", "first"], "the latest first"
    heights = [place.y() for place in view.curve.points()]
    assert heights[0] < heights[3] < heights[1] < heights[2], "a longer time stands higher"
    assert "incorrect" in view.curve.accessibleDescription()

    assert not view.back.isEnabled(), "the file is this version"
    where = view.curve.points()[0].toPoint()
    QTest.mouseClick(view.curve, Qt.MouseButton.LeftButton, pos=where)
    assert [save.verdict for save in view.chosen] == ["first"]
    assert view.diff.titles[1].text() == "the file now"
    assert differs(view.diff) == ("b", "d")
    view.table.selectionModel().select(
        view.table.source.index(2, 0), view.table.selectionModel().SelectionFlag.Select |
        view.table.selectionModel().SelectionFlag.Rows,
    )  # fmt: skip
    assert differs(view.diff) == ("b", "c")
    assert not view.back.isEnabled(), "which of the two?"

    view.table.selectRow(3)
    answers = Answers(LEAVE, WRITE)
    view.back.click()
    assert file.read_text() == "a\nd\n"
    view.back.click()
    assert file.read_text() == "a\nb\n"
    assert "stays in this history" in answers.asked[0][1]
    file.write_text("nobody has measured this\n")
    answers = Answers(LEAVE)
    view.back.click()
    assert "would be lost" in answers.asked[0][1]


def test_what_was_measured_is_noted_once_and_an_opened_ladder_has_its_source(qtbot, tmp_path):
    ladder, found = example()
    own = next(m for m in found if m.case.user)
    state = LadderState(LadderQuestion(number=1, model="lenet5-digits"))
    kept = OwnSaves(state._deriver)
    folder, run = tmp_path / "kernels", tmp_path / "run"
    folder.mkdir()
    LADDER.create(run, ladder)
    kept.look([str(folder)])
    qtbot.waitUntil(lambda: not state._deriver.busy)
    info = RungInfo(own.case, str(folder / "90_mine.py"), "as it was measured")
    measured = {own.case.key: version(own.case, 40)}
    for _ in range(2):  # the second whole ladder finds its version known
        kept.begin([info], measured)
        kept.note(ladder, ladder.cases, measured, run)
        qtbot.waitUntil(lambda: not state._deriver.busy and len(kept.all) == 1)
    kept.note(ladder, ladder.cases, measured, None)  # a save is one, whatever is in it
    qtbot.waitUntil(lambda: len(kept.all) == 2)
    assert kept.of(own.case.rung, ladder.job.title, ladder.job.device) == kept.all

    kept.show(run)
    qtbot.waitUntil(lambda: len(kept.shown) == 1)
    state.show(run, ladder, measured.values())
    assert state.info(own.case.rung) is None, "nobody has asked for its files yet"
    state.sources = {save.rung: save.source for save in kept.shown}
    assert state.info(own.case.rung).source == "as it was measured"
    assert "saves.jsonl" in LADDER.own, "it goes where the ladder's folder goes"
