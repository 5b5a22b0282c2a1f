"""Processes that the window starts in tests, forked from one that has loaded what they need: that is most of
what a small run, a plan or an export costs. For what other tests start there is tests/preloaded.py.

Qt starts them, which wants to know their number, their end and what they write. So it starts a client, which
loads hardly anything: it asks a server for a process that gets its three files, waits for that one's end and
ends the same way; where the client is killed, the kernel kills the other. Where the server refuses, because
the environment is not that of the tests, the client becomes what was asked for.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import marshal
import os
import select
import signal
import socket
import subprocess
import sys

from engine.isolated.forked import template
from kernels import processes
from tests import preloaded
from tests.gui import forked_client

CLIENT = forked_client.__file__
F_SETSIG = 10  # of Linux

LOADED = (
    "bench.questions.model_facts", "bench.questions.model_takes", "bench.questions.model_preview",
    "bench.measure.ladder.describe", "bench.measure.ladder.compiled", "bench.views.drawing.draw_ready",
)  # fmt: skip
_servers = {}


def command(words):
    """What Qt is to start for a process of these words: of a module and of main.py the client."""
    ours = words[0] == sys.executable and (words[1] == "-m" or words[1] == preloaded.MAIN)
    if not ours or subprocess.Popen is not preloaded.Popen:
        return words
    return [sys.executable, "-I", "-S", CLIENT, _server(), *words]


def _server():
    """The address of this process's."""
    owner = os.getpid()
    if owner not in _servers:
        path = f"kernelscope-tests-{owner}-{os.urandom(8).hex()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(f"\0{path}")
            listening.listen(64)
            text = f"{preloaded.MARK}from {__name__} import serve; serve({owner})"
            words = [sys.executable, "-c", text]
            process = subprocess.Popen(words, stdin=listening.fileno(), cwd=preloaded.ROOT)
        atexit.register(process.kill)
        _servers[owner] = path
    return _servers[owner]


# ---------------------------------------------------------------------------------------------- in the server


def serve(owner):
    """Until the tests' process is gone; what is forked never comes back from here either."""
    processes.die_with_parent(owner)
    for name in LOADED:
        with contextlib.suppress(ImportError):  # told where it is needed
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    listening = socket.socket(fileno=os.dup(0))
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    running = {}
    while True:
        ready, _, _ = select.select([listening, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] in running:  # else one that had lost its parent
                    _tell(running.pop(ended[0]), marshal.dumps(ended[1]))
        if listening in ready:
            end, _ = listening.accept()
            data, fds, _, _ = socket.recv_fds(end, preloaded.MESSAGE_NBYTES, 3)
            if len(fds) < 3:  # it was killed before it had said more
                end.close()
                continue
            words, environment, folder = marshal.loads(data)
            able = preloaded.like_ours(environment) and template.one_thread()
            forked = os.fork() if able else None
            if forked == 0:
                break
            for fd in fds:
                os.close(fd)
            if forked is None:
                end.close()
            else:
                running[forked] = end
                with contextlib.suppress(OSError):  # killed since; so is what was forked
                    end.send(forked_client.TAKEN)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for other in (*running.values(), listening):
        other.close()
    os.close(woken)
    os.close(wakes)
    _end_with(end)
    preloaded.become(preloaded.order(words[1:], environment, folder, session=True), fds)


def _tell(end, data):
    with contextlib.suppress(OSError), end:  # it may have been killed first
        end.send(data)


def _end_with(end):
    """The kernel kills this process once the other end is closed."""
    fcntl.fcntl(end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(end, F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(end, fcntl.F_SETFL, fcntl.fcntl(end, fcntl.F_GETFL) | os.O_ASYNC)
    gone = select.poll()
    gone.register(end, select.POLLHUP)
    if gone.poll(0):
        os._exit(1)
    end.detach()  # open as long as this process
