"""What somebody set of a device's context, or of a stream, is put back and told."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from engine.cuda.stream import Context, Stream
from tests.standin.device import Device
from tests.standin.modules.cupy import Cupy
from tests.standin.settings import Settings


class Cuda:
    """libcuda, of one context and one stream."""

    def __init__(self) -> None:
        self.limits = {0x05: 64, 0x06: 0}
        self.window = b"\0" * 64
        self.forgotten = 0

    def cuCtxGetLimit(self, held: Any, limit: int) -> int:
        held._obj.value = self.limits[limit]
        return 0

    def cuCtxSetLimit(self, limit: int, held: ctypes.c_size_t) -> int:
        self.limits[limit] = held.value
        return 0

    def cuStreamGetAttribute(self, stream: Any, attribute: int, value: Any) -> int:
        assert attribute == 1
        ctypes.memmove(ctypes.byref(value._obj), self.window, 64)
        return 0

    def cuStreamSetAttribute(self, stream: Any, attribute: int, value: Any) -> int:
        self.window = ctypes.string_at(ctypes.byref(value._obj), 64)
        return 0

    def cuCtxResetPersistingL2Cache(self) -> int:
        self.forgotten += 1
        return 0


def test_limits_are_put_back_and_told() -> None:
    cuda = Cuda()
    context = Context(cuda)
    context.look(1)
    assert (context.undone, cuda.forgotten) == ([], 0)
    cuda.limits |= {0x06: 1 << 20, 0x05: 32}
    for _ in range(2):
        context.look(1)
    assert cuda.limits == {0x05: 64, 0x06: 0}
    assert context.undone == [
        "how much the L2 cache fetches at once",
        "how much of the L2 cache is kept for lines that persist",
    ]
    assert cuda.forgotten == 2


def test_lines_of_a_stream_that_were_to_stay_are_let_go() -> None:
    cuda = Cuda()
    context = Context(cuda)
    cuda.window = bytes(ctypes.c_uint64(4096)) + bytes(ctypes.c_uint64(1 << 20)) + b"\1" * 48
    context.look(1)
    assert cuda.window == b"\0" * 64
    assert context.undone == ["which lines of a stream stay in the L2 cache"]


@pytest.mark.parametrize("cuda", [object(), None])
def test_of_an_old_driver_nothing_is_asked(cuda: object) -> None:
    context = Context(cuda)
    context.look(1)
    context.forget_lines()
    assert context.undone == []


def test_lines_that_persist_go_before_a_cold_pass() -> None:
    cupy = Cupy(Device(Settings()))
    stream = Stream(cupy, cupy.cuda.MemoryPool())
    stream.context = Context(cuda := Cuda())
    stream.elapsed_ns(lambda: None)
    assert cuda.forgotten == 0
    stream.elapsed_ns(lambda: None, cold=True)
    assert cuda.forgotten == 1
