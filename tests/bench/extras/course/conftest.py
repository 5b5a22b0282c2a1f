"""Locks of the tests' own: another's run on this machine is not waited for. And workers that threads start
are forked as others are."""

from collections.abc import Iterator

import pytest

from bench.extras.fleet import device_lock
from tests import preloaded


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(device_lock.FOLDER, str(tmp_path_factory.mktemp("locks")))
        preloaded.ready()
        yield
