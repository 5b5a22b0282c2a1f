"""A comparison in the window on a machine that has a GPU: the real worker, the device of tests.standin."""

from bench.results.records import Job
from bench.run.kinds.comparison import KIND as COMPARISON
from tests.gui.sessions.test_session import dispositions
from tests.standin import environment

BACKENDS = ("engine-cpu", "engine-cuda", "ort-cpu", "ort-cuda")


def test_four_backends_are_compared(make_window, run_to_end, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    window = make_window()
    known = {info.name: info.unavailable for info in window.backends}
    assert {name: known[name] for name in BACKENDS} == dict.fromkeys(BACKENDS, "")
    how = {"images": (32,), "budget_s": 0.02, "tune": "none", "layers": False}
    job = Job(models=("lenet5-digits",), backends=(), batches=(2,), **how)
    found = run_to_end(window, job)
    assert [m.reason for m in found.values() if m.reason] == []
    assert dispositions(found) == ["ok"] * 4
    assert {m.case.backend for m in found.values()} == set(BACKENDS)
    assert len({m.accuracy.top1 for m in found.values()}) == 1
    held = COMPARISON.open(window.state.folder)
    assert dispositions({m.case.key: m for m in held.measurements()}) == ["ok"] * 4
    assert held.header.job.backends == ()
    chart = window.pages[0].views["op-time"].chart
    assert {series.label for panel in chart.panels for series in panel.series} >= set(BACKENDS)
    assert window.progress.words.text().startswith("4 of 4 cases ok")
