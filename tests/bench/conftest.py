from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench import brief


@pytest.fixture(autouse=True, scope="package")
def _brief_processes() -> Iterator[None]:
    """Before all that modules share: some of it is measured by a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", brief.environment())
        yield
