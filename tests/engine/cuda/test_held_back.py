"""What is put on a stream waits for the end of the block, and no garbage is collected meanwhile: in a host
function CUDA permits no call, such as those that free CuPy's objects."""

import gc
import threading
import time
from collections.abc import Callable

import pytest

from engine.cuda import runtime

PATIENCE_S = 30.0  # what a busy machine may need


class Stream:
    """Calls a host function on a thread of its own, after `late_s`."""

    def __init__(self, late_s: float = 0.0) -> None:
        self._late_s = late_s
        self.thread: threading.Thread | None = None
        self.collects: list[bool] = []  # whether garbage was collected when it began and when it was over

    def launch_host_func(self, function: Callable[[object], None], argument: object) -> None:
        def call() -> None:
            time.sleep(self._late_s)
            self.collects.append(gc.isenabled())
            function(argument)
            self.ended = True

        self.ended = False
        self.thread = threading.Thread(target=call)
        self.thread.start()


@pytest.fixture(autouse=True)
def _collects():
    assert gc.isenabled()
    yield
    gc.enable()


def test_it_waits_for_the_end_of_the_block_and_no_garbage_is_collected_meanwhile():
    stream = Stream()
    with runtime.held_back(stream, PATIENCE_S):
        assert not gc.isenabled()
        time.sleep(0.05)
        assert not stream.ended
    assert gc.isenabled()
    stream.thread.join(PATIENCE_S)
    assert stream.ended
    assert stream.collects == [False]


def test_it_waits_no_longer_than_it_may_and_one_that_comes_late_waits_not_at_all():
    stream = Stream()
    began = time.monotonic()
    with runtime.held_back(stream, 0.02):
        stream.thread.join(PATIENCE_S)  # as work that waits for the stream itself
    assert stream.ended
    late = Stream(late_s=0.2)
    with runtime.held_back(late, 0.02):
        pass
    assert gc.isenabled()
    late.thread.join(PATIENCE_S)
    assert late.ended
    assert time.monotonic() - began < PATIENCE_S


def test_who_collects_no_garbage_does_not_afterwards_and_an_error_is_handed_on():
    class Broken:
        def launch_host_func(self, function, argument):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"), runtime.held_back(Broken()):
        pass
    assert gc.isenabled()
    gc.disable()
    with runtime.held_back(Stream(), 1.0):
        pass
    assert not gc.isenabled()
