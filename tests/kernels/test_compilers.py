"""Rungs compiled by several processes beside each other."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench.extras.course import walls
from kernels import compilers, confine, nvrtc, registry
from kernels.errors import KernelError
from kernels.registry import Rung

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason="NVRTC is not here"),
]
ARCH = "sm_80"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nvrtc, "APART", 2)
    monkeypatch.setattr(nvrtc, "A_PROCESS", 1)
    yield
    assert not compiling(), "none of them is left"


def compiling() -> list[psutil.Process]:
    found = []
    for each in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # it has ended
            if "kernels.compilers.child" in each.cmdline():
                found.append(each)
    return found


def wanted() -> list[tuple[Rung, dict[str, object]]]:
    unary = registry.rungs("cuda", "unary")[0]
    broken = replace(unary, source="__global__ void kernel() { nothing here compiles }", name="broken")
    mine = replace(unary, source=unary.source + "\n// another\n", name="mine", user=True)
    return [(unary, {"OP": 0}), (broken, {}), (mine, {"OP": 0, "MINE": 1})]


def there(rung: Rung, defines: dict[str, object]) -> bool:
    return nvrtc._cubin(rung, ARCH, defines)[0].exists()  # type: ignore[arg-type]


@pytest.mark.sampled(4, "long")
def test_all_are_in_the_cache_but_what_does_not_compile() -> None:
    told: list[tuple[int, int]] = []
    pids: set[int] = set()

    def hear(done: int, total: int) -> None:
        told.append((done, total))
        pids.update(each.pid for each in compiling())

    items = wanted()
    nvrtc.compile_ahead(items, ARCH, 2, hear)  # type: ignore[arg-type]
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert 0 < len(pids) <= 2
    made = [nvrtc.compile_rung(rung, ARCH, defines) for rung, defines in items if rung.name != "broken"]  # type: ignore[arg-type]
    assert all(path.read_bytes()[1:4] == b"ELF" for path in made)
    assert [there(*item) for item in items] == [True, False, True]
    with pytest.raises(Exception, match="does not compile"):
        nvrtc.compile_rung(items[1][0], ARCH)


@pytest.mark.sampled(4, "long")
def test_who_ends_it_waits_for_none_of_them() -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nvrtc.compile_ahead(wanted(), ARCH, 2, stop)  # type: ignore[arg-type]


def test_one_that_is_killed_costs_what_it_had_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    dump, items = compilers.pickled, wanted()

    def kill(value: object) -> bytes:
        if isinstance(value, tuple) and value[0].name == items[0][0].name:
            for each in compiling():
                each.send_signal(signal.SIGKILL)
                each.wait()
        return dump(value)

    monkeypatch.setattr(compilers, "pickled", kill)
    monkeypatch.setattr(nvrtc, "APART", 1)
    told: list[int] = []
    nvrtc.compile_ahead(items, ARCH, 1, lambda done, total: told.append(done))  # type: ignore[arg-type]
    assert told == [1, 2, 3]
    assert [there(*item) for item in items] == [False, False, True], "the first when it is asked for"


def test_a_few_are_not_worth_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "A_PROCESS", 3)
    monkeypatch.setattr(compilers.subprocess, "Popen", None)
    items = wanted()
    nvrtc.compile_ahead(items, ARCH, 2)  # type: ignore[arg-type]
    assert there(*items[0])


@pytest.mark.sampled(4, "long")
def test_a_strangers_file_is_compiled_where_no_other_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := walls.standing()[walls.UID]:
        pytest.skip(lacking)
    for name, value in {
        confine.WALLED_ROOT: str(walls.tree("cuda", walls.MODULES)),
        confine.WALLED_TMP: "/own",
        confine.WALLED_UID: str(walls.FIRST_UID),
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "work").mkdir()
    (tmp_path / "secret.h").write_text("#error told\n")
    (tmp_path / "work" / "beside.cuh").write_text("#define BESIDE 1\n")
    mine = replace(wanted()[2][0], path=tmp_path / "work" / "90_mine.cu")
    beside = replace(mine, source=mine.source + '#include "beside.cuh"\nint of_it[BESIDE];\n')
    other = replace(mine, source=mine.source + '#include "../secret.h"\n')
    try:
        assert nvrtc.compile_rung(beside, ARCH, {"OP": 0}).read_bytes()[1:4] == b"ELF"
        with pytest.raises(Exception, match="cannot open source file"):
            nvrtc.compile_rung(other, ARCH, {"OP": 0})
        dump = compilers.pickled

        def kill(value: object) -> bytes:
            compiling()[0].kill()
            return dump(value)

        with monkeypatch.context() as patch:
            patch.setattr(compilers, "pickled", kill)
            with pytest.raises(KernelError, match="said nothing"):
                nvrtc.compile_rung(mine, ARCH, {"OP": 0, "AGAIN": 1})
        assert nvrtc.compile_rung(mine, ARCH, {"OP": 0, "AGAIN": 1}).exists()
    finally:
        compilers.end_of_strangers()
