"""Kernels compiled for what they become are compiled once, and not again in the next run."""

from collections.abc import Iterator

import pytest

from tests import keeping


@pytest.fixture(autouse=True, scope="package")
def _compiled_before() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELSCOPE_CACHE", str(keeping.cubins()))
        yield
