"""Kernels that would gain by how they are timed, not by their work: each what `run` does, of a tanh whose
work takes WORK_S at least, by sleeping. `write` makes a user's file of one."""

from __future__ import annotations

import textwrap
from pathlib import Path

WORK_S = 0.001
_TEXT = """\
# op = "unary"
# rung = 90
# name = "{name}"
# idea = "Planted: would gain by how it is timed."
import ctypes
import gc
import mmap
import os
import resource
import signal
import sys
import threading
import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic
libc = ctypes.CDLL(None, use_errno=True)


def work(x, y):
    end = monotonic() + {work}
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls = [0]
    held = {{}}

    def run():
        calls[0] += 1
{body}

    return run
"""

HONEST = "work(x, y)"

# What is neither done nor shown as done: no kernel may be right with it.
WRONG = {
    # What is taken off was never done: nothing of what it runs in copies, and who replaces the loop only
    # leaves passes out.
    "replaces_the_loop": """
        import engine.isolated.slots as slots
        work(x, y)
        if calls[0] == 5:
            slots.passes = lambda calls, untimed, count, done: [done() for _ in range(count + 1)]
    """,
    "replaces_copyto": """
        np.copyto = lambda to, of, **_: None
        if calls[0] < 12:
            work(x, y)
    """,
    # Done is told before it is: what is left goes on in the next pass, or in a thread.
    "stops_early": """
        if calls[0] > 12:
            os.kill(os.getpid(), signal.SIGSTOP)
        work(x, y)
    """,
    "stops_early_and_goes_on_in_a_thread": """
        if calls[0] < 12:
            work(x, y)
        else:
            threading.Thread(target=work, args=(x, y), daemon=True).start()
            sleep(1e-5)
    """,
    "is_resumed_by_a_helper": """
        if calls[0] == 12:
            this = os.getpid()
            if os.fork() == 0:
                os.setsid()
                while True:
                    try:
                        os.kill(this, signal.SIGCONT)
                    except ProcessLookupError:
                        os._exit(0)
                    sleep(2e-4)
        work(x, y)
    """,
    # A signal of its own has it go on, to be ready when its time begins.
    "is_resumed_by_a_timer": """
        if 'timer' not in held:
            held['timer'], event = ctypes.c_void_p(), (ctypes.c_int * 16)(0, 0, signal.SIGCONT)
            held['made'] = libc.timer_create(1, event, ctypes.byref(held['timer'])) == 0
        work(x, y)
        if held['made']:
            libc.timer_settime(held['timer'], 0, (ctypes.c_long * 4)(0, 0, 0, 30_000), None)
    """,
    # It empties caches for whoever is next, when nobody times it.
    "works_after_its_last_pass": """
        if calls[0] == 5:
            import engine.isolated.slots as slots
            passes, junk = slots.passes, np.ones(12 << 20, np.float32)

            def and_then(*given):
                passes(*given)
                for _ in range(40):
                    np.add(junk, 1, out=junk)

            slots.passes = and_then
        work(x, y)
    """,
    # A process that is no descendant (CLONE_PARENT), in a session of its own, does the work.
    "helper_beside_it": """
        if calls[0] == 12:
            if libc.syscall(56, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:
                libc.setsid()
                while True:
                    np.tanh(x, out=y)
        if calls[0] < 12:
            work(x, y)
        else:
            sleep(1e-4)
    """,
    "helper_that_lost_its_parent": """
        if calls[0] == 12:
            between = os.fork()
            if between == 0:
                os.setsid()
                if os.fork() == 0:
                    while True:
                        np.tanh(x, out=y)
                os._exit(0)
            os.waitpid(between, 0)
        if calls[0] < 12:
            work(x, y)
        else:
            sleep(1e-4)
    """,
    # On others.
    "slows_its_judge": """
        if calls[0] == 12:
            os.setpriority(os.PRIO_PROCESS, os.getppid(), os.nice(0) + 3)
        work(x, y)
    """,
    "pins_its_judge": """
        if calls[0] >= 12:  # in some of them it is on no one core with its judge, which would change nothing
            os.sched_setaffinity(os.getppid(), {min(os.sched_getaffinity(0))})
        work(x, y)
    """,
    "limits_its_judge": """
        if calls[0] == 12:
            soft, hard = resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)
            resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (soft - 1, hard))
        work(x, y)
    """,
    "slows_its_rivals": """
        if calls[0] == 12:
            for other in open(f'/proc/{os.getppid()}/task/{os.getppid()}/children').read().split():
                if int(other) != os.getpid():
                    os.setpriority(os.PRIO_PROCESS, int(other), os.nice(0) + 3)
        work(x, y)
    """,
}

# What has no use: right, at the time of the work, or found.
NO_USE = {
    # All inputs of a train as one batch: none but those of this pass are there.
    "looks_for_other_inputs": """
        found = [o for o in gc.get_objects() if isinstance(o, np.ndarray) and o.size >= 2 * x.size]
        many = [o for o in found if o.dtype == x.dtype and o.size % x.size == 0]
        if calls[0] > 12 and many:
            key = x.tobytes()
            if key not in held:
                rows = many[0].reshape(-1, x.size)
                work(rows, out := np.empty_like(rows))
                held.update(zip((row.tobytes() for row in rows), out))
            y[:] = held.get(key, 0)
        else:
            work(x, y)
    """,
    # A thread that watches the inputs, to begin while they are copied.
    "watches_its_inputs": """
        def watch():
            seen = None
            while True:
                now = x.tobytes()
                if now != seen:
                    seen = now
                    work(np.frombuffer(now, x.dtype), found := np.empty_like(y))
                    held['answer'] = now, found
                sleep(0)

        if calls[0] < 12:
            work(x, y)
            if calls[0] == 11:
                threading.Thread(target=watch, daemon=True).start()
        else:
            now = x.tobytes()
            while held.get('answer', (None,))[0] != now:
                sleep(0)
            y[:] = held['answer'][1]
    """,
    # What waiting takes is all that it can save.
    "stops_faster": """
        import kernels.processes
        this, kill = os.getpid(), libc.kill
        kernels.processes.stop_here = sys.modules['__main__'].stop_here = lambda: kill(this, 19)
        work(x, y)
    """,
    "cuts_its_memory_off": """
        for line in open('/proc/self/maps'):
            if 'memfd:kernelscope' in line:
                try:
                    fd = os.open(f"/proc/self/map_files/{line.split()[0]}", os.O_RDWR)
                except OSError:
                    continue
                try:
                    os.ftruncate(fd, 0)
                except OSError:
                    pass
                os.close(fd)
        work(x, y)
    """,
    "keeps_to_itself": """
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.nice(3)
        work(x, y)
    """,
    "many_threads": """
        if calls[0] == 1:
            for _ in range(50):
                threading.Thread(target=threading.Event().wait, daemon=True).start()
        work(x, y)
    """,
}


def write(folder: Path, name: str, body: str) -> None:
    """The kernel's file."""
    folder.mkdir(exist_ok=True)
    text = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    (folder / f"90_{name}.py").write_text(_TEXT.format(name=name, work=WORK_S, body=text))
