"""What kernels of tests run on: compiled for the host, or on a GPU. Those that are compiled for what they
become are compiled once, and not again in the next run."""

from collections.abc import Iterator

import pytest

from engine.backends.engine_cuda import BACKEND
from tests import keeping
from tests.bench.judge.on_the_host import COMPILER, Hosted
from tests.kernels.cuda_device import Device


@pytest.fixture(autouse=True, scope="package")
def _compiled_before() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELSCOPE_CACHE", str(keeping.cubins()))
        yield


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Hosted:
    if COMPILER is None:
        pytest.skip("no compiler for the host")
    return Hosted(tmp_path_factory.mktemp("hosted"), turns=True)


@pytest.fixture(scope="module")
def device() -> Device:
    if reason := BACKEND.unavailable():
        pytest.skip(reason)
    return Device()
