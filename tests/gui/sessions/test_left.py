"""How long a run may still take, as the window has it: what earlier runs took on this machine counts, too."""

import pytest

from bench.results.records import Environment, Job
from bench.run.past import Past

pytestmark = pytest.mark.usefixtures("own_cache")

JOB = Job(models=("net",), backends=("engine-cpu", "ort-cpu"), batches=(1, 2), timeout_s=60)
MACHINE = Environment(machine="fake", cpu="Example CPU 9000")


def test_what_a_run_took_is_kept_and_told_to_the_next(make_window, run_to_end, qtbot):
    window = make_window("ok", "held")
    run_to_end(window, JOB)
    known = Past("compare", window.session.kind.open(window.state.folder).header.job).of(MACHINE)
    assert {one.where.batch for one in known} == {1, 2}
    assert all(0 <= one.samples < 60 for one in known)
    window.start(JOB)
    qtbot.waitUntil(lambda: window.session.standing.done == 1)
    _, most = window.session.standing.left
    assert most < 4 * JOB.budget_s / 2, "what it said it would take is no more believed"
    window.session.cancel()
    qtbot.waitUntil(lambda: not window.session.active)
    assert Past("compare", JOB).of(MACHINE)[: len(known)] != ()


def test_where_nothing_can_be_kept_the_run_goes_on(make_window, run_to_end, tmp_path):
    (tmp_path / "cache").write_text("a file")
    window = make_window("ok")
    found = run_to_end(window, JOB)
    assert [m.disposition for m in found.values()] == ["ok"] * 4
