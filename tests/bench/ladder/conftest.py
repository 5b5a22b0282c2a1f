"""Where ladders of tests are written: in a folder of their own, with one cache for all."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def in_a_folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.chdir(tmp_path)
