"""Layers' outputs copied to the host and back: each once either way, over the memory that was asked for, and
all is freed the way it was got."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from engine.cuda.copies import MEMORIES, LayerCopies

SIZES = (64, 8192, 400)


class Runtime:
    """Host memory in the device's place; what was called, in order."""

    def __init__(self) -> None:
        self.called: list[tuple[str, Any]] = []
        self.held: dict[int, Any] = {}

    def _get(self, name: str, nbytes: int) -> int:
        made = ctypes.create_string_buffer(nbytes)
        self.held[ctypes.addressof(made)] = made
        self.called.append((name, nbytes))
        return ctypes.addressof(made)

    def malloc(self, nbytes: int) -> int:
        return self._get("malloc", nbytes)

    def hostAlloc(self, nbytes: int, flags: int) -> int:
        return self._get("hostAlloc", nbytes)

    def mallocManaged(self, nbytes: int) -> int:
        return self._get("mallocManaged", nbytes)

    def memcpy(self, to: int, source: int, nbytes: int, kind: int) -> None:
        ctypes.memmove(to, source, nbytes)
        self.called.append(("memcpy", (nbytes, kind)))

    def free(self, pointer: int) -> None:
        del self.held[pointer]
        self.called.append(("free", None))

    def freeHost(self, pointer: int) -> None:
        del self.held[pointer]
        self.called.append(("freeHost", None))


@pytest.mark.parametrize("memory", MEMORIES)
def test_each_layer_goes_both_ways_and_all_is_freed_as_it_was_got(memory: Any) -> None:
    runtime = Runtime()
    copies = LayerCopies(SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)), SIZES, memory)
    got = [name for name, _ in runtime.called]
    assert (
        got
        == {
            "pageable": ["malloc"],
            "pinned": ["malloc", "hostAlloc"],
            "managed": ["malloc", "mallocManaged"],
        }[memory]
    )
    copies.run()
    moved = [what for name, what in runtime.called if name == "memcpy"]
    assert moved == [(nbytes, kind) for nbytes in SIZES for kind in (2, 1)]
    copies.close()
    assert runtime.held == {}
    assert ("freeHost", None) in runtime.called or memory != "pinned"
