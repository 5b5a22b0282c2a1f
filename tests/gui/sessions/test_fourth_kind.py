"""A kind of run that the window has no page for (`tests/bench/kinds/fourth`): measured behind it, listed, and
told."""

import pytest

from gui.sessions.session import Session
from gui.shell.library import Library, listed_runs
from tests.bench.results import fourth


@pytest.fixture
def toy():
    with fourth.there() as module:
        yield module


def test_it_is_measured_behind_the_window(toy, tmp_path, qtbot):
    session = Session(toy.KIND, None, tmp_path)
    seen, heard = [], []
    session.stands.connect(seen.append)
    session.greeted.connect(heard.append)
    folder = toy.KIND.create(tmp_path / "toy", fourth.planned(toy, 2, 13, 4))
    with qtbot.waitSignal(session.ended):
        session.begin(folder, folder.cases)
        assert session.writing == tmp_path / "toy"
    assert {m.case.number: m.disposition for m in toy.KIND.open(folder.path).measurements()} == {
        2: "ok",
        13: "crashed",
        4: "ok",
    }
    assert [standing.phase for standing in seen][:2] == ["starting", "running"]
    assert any(standing.words == "squaring the square of 4" for standing in seen)
    assert max(standing.done for standing in seen) == 3
    assert heard[-1].environment.machine == "a head"
    assert "bad luck" in folder.log.read_text()
    assert session.writing is None
    session.quit()


def test_one_on_the_disk_is_listed_and_what_cannot_show_it_says_so(toy, make_window, tmp_path, qtbot):
    window = make_window("ok", begin=False)
    library = window.findChild(Library)
    path = library.runs / "a toy"
    toy.KIND.create(path, fourth.planned(toy, 2))
    said = []
    window.banner.show_message = lambda text, severity="info", about="": said.append(text)
    assert [(line.name, line.what) for line in listed_runs(library.runs, ())] == [("a toy", "toy: 1 numbers")]
    library.open(path)
    qtbot.waitUntil(lambda: bool(said))
    assert "holds no run, but holds a toy" in said[0]
