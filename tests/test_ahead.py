"""What is compiled before the tests begin is what Python and pytest look for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests import ahead


def test_bytecode_is_written_where_it_is_read_and_no_longer_once_the_text_has_changed(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "kept"))
    paths = [tmp_path / name for name in ("broken.py", "plain.py", "test_it.py")]
    for path in paths:
        path.write_text("assert 1\n" if path.stem != "broken" else "assert")
    ahead._share(pytestconfig, paths, 1, 3)
    assert [ahead._kept(path).is_file() for path in paths] == [False, True, True]
    test = paths[-1]
    assert rewrite._read_pyc(test, ahead._kept(test)) is not None
    test.write_text("assert 2\n")
    assert rewrite._read_pyc(test, ahead._kept(test)) is None
