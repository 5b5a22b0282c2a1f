"""The pytest plugin: `@pytest.mark.kernel` and the fixture `kernelscope_benchmark`.

Every pytest of whoever has installed kernelscope loads this module. It imports nothing but pytest;
kernelscope.testing has the rest, and is loaded by the first test of a kernel.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kernelscope.testing import Benchmark

MARK = "kernel"
FIXTURE = "kernelscope_benchmark"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kernelscope")
    group.addoption(
        "--kernelscope-update",
        action="store_true",
        help="Keep what is measured now as the baseline that kernels are held against.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kernel(path, op=None, **options): judge this kernel (kernelscope.judge) before the test runs; it "
        "fails where the kernel is wrong, or slower than the baseline that is kept of it",
    )


@pytest.fixture(scope="session")
def _kernelscope_judges() -> Iterator[list[object]]:
    """The judge of the session, once a test has needed one."""
    judges: list[object] = []
    yield judges
    for judge in judges:
        judge.close()  # type: ignore[attr-defined]


@pytest.fixture
def kernelscope_benchmark(request: pytest.FixtureRequest, _kernelscope_judges: list[object]) -> Benchmark:
    """Judges kernels: `kernelscope_benchmark(kernel, op=…, …)` is as `kernelscope.judge`, and fails the test
    where the kernel is wrong, or slower than the baseline that is kept of this test. Without a kernel, that
    of the mark."""
    from kernelscope.testing import Benchmark

    return Benchmark(request.node, _kernelscope_judges)


@pytest.hookimpl(trylast=True)  # a conftest's may add the mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names: list[str] | None = getattr(item, "fixturenames", None)
        if names is not None and FIXTURE not in names and _names_a_kernel(item):
            names.append(FIXTURE)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """A test that has the mark and does not judge by itself: its kernel is judged before it runs."""
    own = getattr(item, "_fixtureinfo", None)
    if own is None or FIXTURE in own.argnames or not _names_a_kernel(item):
        return
    item._request.getfixturevalue(FIXTURE)()  # type: ignore[attr-defined]


def _names_a_kernel(item: pytest.Item) -> bool:
    """Whether it has the mark, and not another's mark of that name."""
    mark = item.get_closest_marker(MARK)
    return (
        mark is not None
        and bool(mark.args)
        and (isinstance(mark.args[0], str | os.PathLike) or callable(mark.args[0]))
    )
