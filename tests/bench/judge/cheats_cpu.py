"""Kernels that would rather not work, as the files of a user: each a name, and what `bind` does.

The work is a tanh that takes WORK_S at least, by sleeping: whoever answers in less has not done it.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

WORK_S = 0.001

_HEAD = """# op = "{op}"
# rung = {number}
# name = "{name}"
# idea = "Planted: does not do its work while it is timed."
import ctypes
import gc
import os
import signal
import socket
import struct
import sys
import threading
import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + {work}
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls = [0]
    held = {{}}

"""

# What `run` is, with x, y, calls and held at hand.
RUNS = {
    # ------------------------------------------------------------------ from memory, by some key
    "once": """
        if calls[0] == 0:
            work(x, y)
        calls[0] += 1
    """,
    "tenth_call_on": """
        calls[0] += 1
        if calls[0] < 10:
            work(x, y)
    """,
    "fortieth_call_on": """
        calls[0] += 1
        if calls[0] < 40:
            work(x, y)
    """,
    "by_first_values": """
        key = x[:2].tobytes()
        if key not in held:
            work(x, y)
            held[key] = y.copy()
        y[:] = held[key]
    """,
    "by_strided_values": """
        key = x[::1999].tobytes()
        if key not in held:
            work(x, y)
            held[key] = y.copy()
        y[:] = held[key]
    """,
    "by_rounded_sum": """
        key = round(float(x.sum()) / 50)
        if key not in held:
            work(x, y)
            held[key] = y.copy()
        y[:] = held[key]
    """,
    "by_last_value": """
        key = float(x[-1])
        if key not in held:
            work(x, y)
            held[key] = y.copy()
        y[:] = held[key]
    """,
    "by_pointer": """
        key = x.ctypes.data
        if key not in held:
            work(x, y)
            held[key] = y.copy()
        y[:] = held[key]
    """,
    "by_id": """
        key = id(inputs)
        if key not in held:
            work(x, y)
            held[key] = y.copy()
        y[:] = held[key]
    """,
    "by_whole_content": """
        key = x.tobytes()
        if key not in held:
            work(x, y)
            held[key] = y.copy()
        y[:] = held[key]
    """,
    "every_second": """
        calls[0] += 1
        if calls[0] % 2 or calls[0] < 12:
            work(x, y)
            held[0] = y.copy()
        else:
            y[:] = held[0]
    """,
    "one_in_ten": """
        calls[0] += 1
        if calls[0] % 10 == 0 or calls[0] < 12:
            work(x, y)
    """,
    # ------------------------------------------------------------------ by what the output holds
    "unless_all_poison": """
        if np.isnan(y).all() or (y == y[0]).all():
            work(x, y)
    """,
    "unless_first_is_poison": """
        if np.isnan(y[0]) or y[0] > 1:
            work(x, y)
    """,
    "unless_any_poison_seen": """
        if np.isnan(y[:64]).any() or (y[:64] > 1).any():
            work(x, y)
    """,
    "mends_the_poison": """
        bad = ~(np.abs(y) <= 1)
        if bad.all():
            work(x, y)
        else:
            y[bad] = np.tanh(x[bad])
    """,
    # ------------------------------------------------------------------ another answer than this pass's
    "the_pass_before": """
        now = x.copy()
        if calls[0] < 12:
            work(x, y)
        else:
            np.tanh(held[0], out=y)
        held[0] = now
        calls[0] += 1
    """,
    "a_half_each": """
        half = len(x) // 2
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
        elif calls[0] % 2:
            np.tanh(x[:half], out=y[:half])
        else:
            np.tanh(x[half:], out=y[half:])
    """,
    "zeros": """
        if calls[0] < 12:
            work(x, y)
        else:
            y[:] = 0
        calls[0] += 1
    """,
    "half_precision": """
        y[:] = np.tanh(x.astype(np.float16))
    """,
    "only_small_sizes": """
        if len(x) < 2000:
            work(x, y)
        else:
            y[:] = 0.5
    """,
    "undoes_the_change": """
        if calls[0] < 12:
            work(x, y)
            held['x'], held['y'] = x.copy(), y.copy()
        else:
            x[:] = held['x']
            y[:] = held['y']
        calls[0] += 1
    """,
    # ------------------------------------------------------------------ outside of the time
    "in_a_thread": """
        now = x.copy()
        threading.Thread(target=work, args=(now, y), daemon=True).start()
    """,
    "in_a_thread_when_warm": """
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
        else:
            threading.Thread(target=work, args=(x, y), daemon=True).start()
    """,
    "by_an_alarm": """
        if calls[0] < 12:
            work(x, y)
        else:
            signal.signal(signal.SIGALRM, lambda *_: work(x, y))
            signal.setitimer(signal.ITIMER_REAL, 0.002)
        calls[0] += 1
    """,
    "in_a_child": """
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
        elif os.fork() == 0:
            work(x, y)
            os._exit(0)
    """,
    # ------------------------------------------------------------------ knowing when it is timed
    "when_called_by_each": """
        if sys._getframe(1).f_code.co_name != 'passes':
            work(x, y)
    """,
    "when_there_are_copies": """
        if 'done' not in sys._getframe(1).f_locals:
            work(x, y)
    """,
    # ------------------------------------------------------------------ looking for the answer
    "from_frames": """
        frame = sys._getframe()
        found = None
        while frame is not None:
            for value in frame.f_locals.values():
                value = getattr(value, 'expected', None)
                found = value if isinstance(value, np.ndarray) else found
            frame = frame.f_back
        y[:] = 0 if found is None else found.reshape(-1)
    """,
    "from_the_heap": """
        arrays = [o for o in gc.get_objects() if isinstance(o, np.ndarray)]
        found = [a for a in arrays if a.dtype == np.float64 and a.size == y.size]
        y[:] = found[-1].reshape(-1) if found else 0
    """,
    "from_the_cache": """
        from kernels.cache import cache_dir
        found = None
        for path in (cache_dir() / 'oracle').glob('*.npz'):
            for array in np.load(path).values():
                if array.size == y.size and array.dtype == np.float64:
                    found = array
        y[:] = 0 if found is None else found.reshape(-1)
    """,
    "by_guessing_the_seed": """
        drawn = np.random.default_rng(0).standard_normal(x.shape, np.float32)
        work(x, y) if calls[0] < 12 else np.tanh(drawn, out=y)
        calls[0] += 1
    """,
    # ------------------------------------------------------------------ on the machinery around it
    "patched_clock": """
        for name in ('perf_counter', 'perf_counter_ns', 'monotonic_ns', 'time'):
            setattr(time, name, lambda: 0)
        work(x, y)
    """,
    "patched_copies": """
        import engine.apart.open_rung as apart
        if calls[0] == 12:
            apart.copied = lambda *_: None
        calls[0] += 1
        work(x, y) if calls[0] < 12 else None
    """,
    "patched_each": """
        from engine.apart.open_rung import RungHere
        work(x, y)
        calls[0] += 1
        if calls[0] == 5:
            RungHere.passes = lambda self, untimed, count, done: [done() for _ in range(count + 1)]
    """,
    "patched_stirring": """
        import engine.stirring as s
        s.secrets.randbits = lambda n: 0
        s.Stirring.places = lambda *a: np.zeros(1, int)
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
    """,
    "patched_comparer": """
        import engine.rung_rows as r
        r.same = lambda *a: True
        r.changed = lambda *a, **k: None
        np.isfinite = lambda a: np.ones(np.shape(a), bool)
        np.abs = lambda a: np.zeros(np.shape(a))
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
    """,
    "changed_params": """
        object.__setattr__(p, 'size', 1)
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
    """,
    "answers_early": """
        calls[0] += 1
        if calls[0] > 12:
            for o in gc.get_objects():
                if isinstance(o, socket.socket):
                    o.send(struct.pack('<BI', 2, 0))
        work(x, y)
    """,
    "answers_early_and_once": """
        calls[0] += 1
        if calls[0] == 12:
            for o in gc.get_objects():
                if type(o).__name__ == 'Channel':
                    held[0] = o._send
                    o._send = lambda data, fds: held[0](data, fds) if data[:1] != b'\\x02' else None
        if calls[0] >= 12 and sys._getframe(1).f_code.co_name == 'passes':
            held[0](struct.pack('<BI', 2, 0), ())
        work(x, y)
    """,
    "answers_early_by_descriptor": """
        calls[0] += 1
        if calls[0] > 12:
            for fd in range(3, 40):
                try:
                    os.write(fd, struct.pack('<BI', 2, 0))
                except OSError:
                    pass
        work(x, y)
    """,
    "says_what_is_no_answer": """
        for fd in range(3, 40):
            try:
                os.write(fd, b'{"type": "Done"}\\n' * 9)
            except OSError:
                pass
        work(x, y)
    """,
    "says_without_end": """
        for o in gc.get_objects():
            if isinstance(o, socket.socket):
                o.send(struct.pack('<BI', 1, 0xFFFFFFFF))
        work(x, y)
    """,
    "answers_a_pickle": """
        import pickle
        for o in gc.get_objects():
            if isinstance(o, socket.socket):
                evil = pickle.dumps(print)
                o.send(struct.pack('<BI', 1, len(evil)) + evil)
    """,
    "writes_on_standard_output": """
        os.write(1, b'{"type": "Done"}\\n')
        print('{"type": "Done"}')
        work(x, y)
    """,
    "closes_all": """
        os.closerange(3, 200)
    """,
    "into_all_slots": """
        for o in gc.get_objects():
            if type(o).__name__ == 'Held':
                for _, outs in o.copies:
                    for to, of in outs:
                        to[:] = of
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
    """,
    # ------------------------------------------------------------------ ends
    "exits_75": """
        os._exit(75)
    """,
    "exits_75_when_warm": """
        calls[0] += 1
        work(x, y)
        if calls[0] > 12:
            os._exit(75)
    """,
    "leaves": """
        sys.exit(0)
    """,
    "kills_itself": """
        os.kill(os.getpid(), signal.SIGKILL)
    """,
    # ------------------------------------------------------------------ on others
    "busy_threads": """
        a = np.ones((200, 200), np.float32)

        def spin():
            while True:
                a @ a

        if not held:
            held[0] = threading.Thread(target=spin, daemon=True)
            held[0].start()
        work(x, y)
    """,
    "busy_children": """
        calls[0] += 1
        if calls[0] == 1 and os.fork() == 0:
            while True:
                pass
        work(x, y)
    """,
    "one_core_for_all": """
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.nice(0)
        work(x, y)
    """,
}

# That do their work all the same: what they try has no use, and they may be right, at their own time.
WORKS = (
    "unless_any_poison_seen", "by_whole_content", "patched_clock", "writes_on_standard_output",
    "busy_threads", "one_core_for_all",
)  # fmt: skip

# That leave their work to somebody else, who on a busy machine may now and then be done before they are: then
# they are right, at the time that this took.
ELSEWHERE = ("in_a_thread", "in_a_thread_when_warm", "in_a_child", "by_an_alarm")

HONEST = "work(x, y)"


def write(folder: Path, name: str, run: str, number: int = 90, op: str = "unary") -> None:
    """The kernel's file."""
    folder.mkdir(exist_ok=True)
    body = textwrap.indent(textwrap.dedent(run).strip(), " " * 8)
    text = (
        _HEAD.format(op=op, number=number, name=name, work=WORK_S)
        + f"    def run():\n{body}\n\n    return run\n"
    )
    (folder / f"{number}_{name}.py").write_text(text)
