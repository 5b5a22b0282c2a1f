"""Kernels that would rather not work, as the files of a user: each a name, and what `bind` does.

The work is a tanh that takes WORK_S at least, by sleeping: whoever answers in less has not done it.
"""

from __future__ import annotations

from pathlib import Path

WORK_S = 0.001

_HEAD = """# op = "unary"
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

# What `run` is, with x, y, calls and held at hand; "-": not a word of its own, but all behind `bind`'s start.
RUNS = {
    # ------------------------------------------------------------------ from memory, by some key
    "once": "if calls[0] == 0:\n    work(x, y)\ncalls[0] += 1",
    "tenth_call_on": "calls[0] += 1\nif calls[0] < 10:\n    work(x, y)",
    "fortieth_call_on": "calls[0] += 1\nif calls[0] < 40:\n    work(x, y)",
    "by_first_values": "key = x[:16].tobytes()\nif key not in held:\n    work(x, y)\n    held[key] = y.copy()\ny[:] = held[key]",
    "by_strided_values": "key = x[::97].tobytes()\nif key not in held:\n    work(x, y)\n    held[key] = y.copy()\ny[:] = held[key]",
    "by_rounded_sum": "key = round(float(x.sum()) / 50)\nif key not in held:\n    work(x, y)\n    held[key] = y.copy()\ny[:] = held[key]",
    "by_last_value": "key = float(x[-1])\nif key not in held:\n    work(x, y)\n    held[key] = y.copy()\ny[:] = held[key]",
    "by_pointer": "key = x.ctypes.data\nif key not in held:\n    work(x, y)\n    held[key] = y.copy()\ny[:] = held[key]",
    "by_id": "key = id(inputs)\nif key not in held:\n    work(x, y)\n    held[key] = y.copy()\ny[:] = held[key]",
    "by_whole_content": "key = x.tobytes()\nif key not in held:\n    work(x, y)\n    held[key] = y.copy()\ny[:] = held[key]",
    "every_second": "calls[0] += 1\nif calls[0] % 2 or calls[0] < 12:\n    work(x, y)\n    held[0] = y.copy()\nelse:\n    y[:] = held[0]",
    "one_in_ten": "calls[0] += 1\nif calls[0] % 10 == 0 or calls[0] < 12:\n    work(x, y)",
    # ------------------------------------------------------------------ by what the output holds
    "unless_all_poison": "if np.isnan(y).all() or (y == y[0]).all():\n    work(x, y)",
    "unless_first_is_poison": "if np.isnan(y[0]) or y[0] > 1:\n    work(x, y)",
    "unless_any_poison_seen": "if np.isnan(y[:64]).any() or (y[:64] > 1).any():\n    work(x, y)",
    "mends_the_poison": "bad = ~(np.abs(y) <= 1)\nif bad.all():\n    work(x, y)\nelse:\n    y[bad] = np.tanh(x[bad])",
    # ------------------------------------------------------------------ another answer than this pass's
    "the_pass_before": "now = x.copy()\nif calls[0] < 12:\n    work(x, y)\nelse:\n    np.tanh(held[0], out=y)\nheld[0] = now\ncalls[0] += 1",
    "a_half_each": "half = len(x) // 2\ncalls[0] += 1\nif calls[0] < 12:\n    work(x, y)\nelif calls[0] % 2:\n    np.tanh(x[:half], out=y[:half])\nelse:\n    np.tanh(x[half:], out=y[half:])",
    "zeros": "if calls[0] < 12:\n    work(x, y)\nelse:\n    y[:] = 0\ncalls[0] += 1",
    "half_precision": "y[:] = np.tanh(x.astype(np.float16))",
    "only_small_sizes": "if len(x) < 2000:\n    work(x, y)\nelse:\n    y[:] = 0.5",
    "undoes_the_change": "if calls[0] < 12:\n    work(x, y)\n    held['x'], held['y'] = x.copy(), y.copy()\nelse:\n    x[:] = held['x']\n    y[:] = held['y']\ncalls[0] += 1",
    # ------------------------------------------------------------------ outside of the time
    "in_a_thread": "now = x.copy()\nthreading.Thread(target=work, args=(now, y), daemon=True).start()",
    "in_a_thread_when_warm": "calls[0] += 1\nif calls[0] < 12:\n    work(x, y)\nelse:\n    threading.Thread(target=work, args=(x, y), daemon=True).start()",
    "by_an_alarm": "if calls[0] < 12:\n    work(x, y)\nelse:\n    signal.signal(signal.SIGALRM, lambda *_: work(x, y))\n    signal.setitimer(signal.ITIMER_REAL, 0.002)\ncalls[0] += 1",
    "in_a_child": "calls[0] += 1\nif calls[0] < 12:\n    work(x, y)\nelif os.fork() == 0:\n    work(x, y)\n    os._exit(0)",
    # ------------------------------------------------------------------ knowing when it is timed
    "when_called_by_each": "if sys._getframe(1).f_code.co_name != 'each':\n    work(x, y)",
    "when_there_are_copies": "if not any('copies' in f.f_locals for f in sys._current_frames().values()) and 'each' not in str(sys._getframe(1).f_code):\n    work(x, y)",
    # ------------------------------------------------------------------ looking for the answer
    "from_frames": "frame = sys._getframe()\nfound = None\nwhile frame is not None:\n    for value in frame.f_locals.values():\n        value = getattr(value, 'expected', None)\n        found = value if isinstance(value, np.ndarray) else found\n    frame = frame.f_back\ny[:] = 0 if found is None else found.reshape(-1)",
    "from_the_heap": "found = [o for o in gc.get_objects() if isinstance(o, np.ndarray) and o.dtype == np.float64 and o.size == y.size]\ny[:] = found[-1].reshape(-1) if found else 0",
    "from_the_cache": "from models.cache import cache_dir\nfound = None\nfor path in (cache_dir() / 'oracle').glob('*.npz'):\n    for array in np.load(path).values():\n        if array.size == y.size and array.dtype == np.float64:\n            found = array\ny[:] = 0 if found is None else found.reshape(-1)",
    "by_guessing_the_seed": "drawn = held.setdefault(0, [np.random.default_rng(s).standard_normal(x.shape, np.float32) for s in range(3)])\nwork(x, y) if calls[0] < 12 else np.tanh(drawn[0], out=y)\ncalls[0] += 1",
    # ------------------------------------------------------------------ on the machinery around it
    "patched_clock": "for name in ('perf_counter', 'perf_counter_ns', 'monotonic_ns', 'time'):\n    setattr(time, name, lambda: 0)\nwork(x, y)",
    "patched_copies": "import engine.apart.open_rung as apart\nif calls[0] == 12:\n    apart.copied = lambda *_: None\ncalls[0] += 1\nwork(x, y) if calls[0] < 12 else None",
    "patched_each": "from engine.apart.open_rung import RungHere\nwork(x, y)\ncalls[0] += 1\nif calls[0] == 5:\n    RungHere.each = lambda self, copies: None",
    "patched_stirring": "import engine.stirring as s\ns.secrets.randbits = lambda n: 0\ns.Stirring.places = lambda *a: np.zeros(1, int)\ncalls[0] += 1\nif calls[0] < 12:\n    work(x, y)",
    "patched_comparer": "import engine.rung_rows as r\nr.same = lambda *a: True\nr.changed = lambda *a, **k: None\nnp.isfinite = lambda a: np.ones(np.shape(a), bool)\nnp.abs = lambda a: np.zeros(np.shape(a))\ncalls[0] += 1\nif calls[0] < 12:\n    work(x, y)",
    "changed_params": "object.__setattr__(p, 'size', 1)\ncalls[0] += 1\nif calls[0] < 12:\n    work(x, y)",
    "answers_early": "calls[0] += 1\nif calls[0] > 12:\n    for o in gc.get_objects():\n        if isinstance(o, socket.socket):\n            o.send(struct.pack('<BI', 2, 0))\nwork(x, y)",
    "answers_early_by_descriptor": "calls[0] += 1\nif calls[0] > 12:\n    for fd in range(3, 40):\n        try:\n            os.write(fd, struct.pack('<BI', 2, 0))\n        except OSError:\n            pass\nwork(x, y)",
    "says_what_is_no_answer": 'for fd in range(3, 40):\n    try:\n        os.write(fd, b\'{"type": "Done"}\\n\' * 9)\n    except OSError:\n        pass\nwork(x, y)',
    "says_without_end": "for o in gc.get_objects():\n    if isinstance(o, socket.socket):\n        o.send(struct.pack('<BI', 1, 0xFFFFFFFF))\nwork(x, y)",
    "answers_a_pickle": "import pickle\nfor o in gc.get_objects():\n    if isinstance(o, socket.socket):\n        evil = pickle.dumps(print)\n        o.send(struct.pack('<BI', 1, len(evil)) + evil)",
    "writes_on_standard_output": 'os.write(1, b\'{"type": "Done"}\\n\')\nprint(\'{"type": "Done"}\')\nwork(x, y)',
    "closes_all": "os.closerange(3, 200)",
    "into_all_slots": "for o in gc.get_objects():\n    if type(o).__name__ == 'Held':\n        for _, outs in o.copies:\n            for to, of in outs:\n                to[:] = of\ncalls[0] += 1\nif calls[0] < 12:\n    work(x, y)",
    # ------------------------------------------------------------------ ends
    "exits_75": "os._exit(75)",
    "exits_75_when_warm": "calls[0] += 1\nwork(x, y)\nif calls[0] > 12:\n    os._exit(75)",
    "leaves": "sys.exit(0)",
    "kills_itself": "os.kill(os.getpid(), signal.SIGKILL)",
    # ------------------------------------------------------------------ on others
    "busy_threads": "def spin():\n    while True:\n        pass\nif not held:\n    held[0] = [threading.Thread(target=spin, daemon=True) for _ in range(2)]\n    [t.start() for t in held[0]]\nwork(x, y)",
    "one_core_for_all": "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nos.nice(0)\nwork(x, y)",
}

# That do their work all the same: what they try has no use, and they may be right, at their own time.
WORKS = (
    "by_whole_content", "patched_clock", "writes_on_standard_output", "busy_threads", "one_core_for_all",
)  # fmt: skip

HONEST = "work(x, y)"


def write(folder: Path, name: str, run: str, number: int = 90) -> None:
    """The kernel's file."""
    folder.mkdir(exist_ok=True)
    body = "\n".join(f"        {line}" for line in run.splitlines())
    text = _HEAD.format(number=number, name=name, work=WORK_S) + f"    def run():\n{body}\n\n    return run\n"
    (folder / f"{number}_{name}.py").write_text(text)
