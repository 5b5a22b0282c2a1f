"""A cache of the test run's own, shared by its tests so that AlexNet is built once, and the offline data."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

DATA = os.environ.get("KERNELSCOPE_DATA")


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    yield folder
    shutil.rmtree(folder)  # three AlexNets are 700 MB, and pytest keeps the folders of its last three runs


@pytest.fixture(autouse=True)
def cache(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(shared_cache))
    return shared_cache


@pytest.fixture
def offline_data() -> Path:
    if not DATA:
        pytest.skip("KERNELSCOPE_DATA names no offline copy of the data sets")
    return Path(DATA)
