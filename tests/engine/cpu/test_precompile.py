"""What is compiled before it is wanted is all that is wanted then."""

from __future__ import annotations

import pytest

from engine.cpu import precompile
from kernels import registry
from kernels.ops import OPS


def test_it_compiles_a_function_of_every_compiled_rung_and_what_joins_them() -> None:
    found = {function.function.__code__.co_filename for function in precompile.functions()}
    rungs = {str(rung.path) for op in OPS for rung in registry.rungs("cpu", op) if rung.compiled}
    assert rungs
    assert found > rungs


def test_it_is_started_once_and_not_where_it_was_tried_before(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(precompile.subprocess, "Popen", lambda words, **named: started.append(words) or words)
    monkeypatch.setattr(precompile.host, "physical_cores", lambda: precompile.CORES)
    monkeypatch.setattr(precompile, "_started", [])
    monkeypatch.setattr(precompile.numba_support, "known", lambda: True)
    precompile.start()
    assert started == []
    monkeypatch.setattr(precompile.numba_support, "known", lambda: False)
    precompile.start()
    precompile.start()
    count = precompile.CORES // 2
    assert [words[-2:] for words in started] == [[str(part), str(count)] for part in range(count)]


def test_who_waits_for_it_has_it_on_few_cores_too(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[list[str]] = []

    class Process:
        def __init__(self, words: list[str], **_: object) -> None:
            self.words = words

        def wait(self) -> None:
            waited.append(self.words[-2:])

    monkeypatch.setattr(precompile.subprocess, "Popen", Process)
    monkeypatch.setattr(precompile.host, "physical_cores", lambda: 1)
    monkeypatch.setattr(precompile, "_started", [])
    monkeypatch.setattr(precompile.numba_support, "known", lambda: True)
    precompile.finish()
    assert waited == []
    monkeypatch.setattr(precompile.numba_support, "known", lambda: False)
    precompile.finish()
    assert waited == [["0", "1"]]
