"""Locks of the tests' own: another's run on this machine is not waited for."""

from collections.abc import Iterator

import pytest

from bench.extras.fleet import device_lock


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(device_lock.FOLDER, str(tmp_path_factory.mktemp("locks")))
        yield
