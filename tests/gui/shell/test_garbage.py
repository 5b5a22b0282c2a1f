"""Garbage of the window is collected by the thread that its objects belong to, and by no other."""

import gc
import threading

from gui.shell.app import Collector


def cycles(count):
    for _ in range(count):
        one = []
        one.append(one)


def test_no_thread_but_the_gui_s_collects(qtbot):
    threads = []

    def note(phase, info):
        threads.append(threading.current_thread())

    collector = Collector()
    assert not gc.isenabled()
    gc.collect()
    gc.callbacks.append(note)
    try:
        reader = threading.Thread(target=cycles, args=(20_000,))
        reader.start()
        reader.join()
        assert threads == []
        qtbot.waitUntil(lambda: bool(threads))  # what is due is collected here
        assert set(threads) == {threading.main_thread()}
    finally:
        gc.callbacks.remove(note)
        collector.stop()
    assert gc.isenabled()
    gc.disable()  # as the other tests of this folder have it
