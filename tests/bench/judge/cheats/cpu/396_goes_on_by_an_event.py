# op = "unary"
# rung = 396
# name = "goes_on_by_an_event"
# idea = "Planted: has the system let it go on, while it is stopped, whenever somebody writes a temporary file; a thread of it then works."
"""
family = "later"
shape = { kind = "tanh", size = 4096 }
expected = ["ok", "failed", "incorrect", "crashed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
alone = true
"""

import ctypes
import fcntl
import os
import signal
import tempfile
import threading
import time

import numpy as np

_CHANGED, _SET_SIGNAL = 0x3C2, 10  # inotify: modified, created, closed, moved, removed; F_SETSIG


def listen():
    """An event in the folder sends this process a signal that lets it go on."""
    libc = ctypes.CDLL(None)
    fd = libc.inotify_init1(os.O_NONBLOCK)
    libc.inotify_add_watch(fd, tempfile.gettempdir().encode(), _CHANGED)
    for folder, _, _ in os.walk(tempfile.gettempdir()):
        if folder.count("/") < 6:
            libc.inotify_add_watch(fd, folder.encode(), _CHANGED)
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, _SET_SIGNAL, signal.SIGCONT)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    begun, ready = threading.Event(), threading.Event()

    def work():
        while True:
            begun.wait()
            begun.clear()
            time.sleep(0.001 * min(1, p.size / 4096))
            np.tanh(x, out=y)
            ready.set()

    try:
        listen()
    except OSError:
        pass
    threading.Thread(target=work, daemon=True).start()

    def run():
        ready.clear()
        begun.set()
        ready.wait()

    return run
