"""One server on the loopback for the tests of a process; places are those of the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.bench.extras.remote import loopback


@pytest.fixture(scope="session")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[loopback.Loopback]:
    with loopback.loopback(tmp_path_factory.mktemp("elsewhere") / "sshd") as server:
        yield server


@pytest.fixture
def lab(_server: loopback.Loopback) -> Iterator[loopback.Loopback]:
    """The server, with an empty home."""
    with loopback.entered(_server):
        yield _server
    shutil.rmtree(_server.folder / "settings", ignore_errors=True)
    shutil.rmtree(_server.home)
    _server.home.mkdir()
