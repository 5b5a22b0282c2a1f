"""Kernels handed to one warm judge, among them some that hang, crash, break out or cheat: each gets its own
answer, in order.

    python -m tests.api.hostile --count 200 --bad 40 --seed 1

Exit status: 1 where an answer is lost, is another kernel's, or is not as it has to be.
"""

from __future__ import annotations

import argparse
import random
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass

import kernelscope as ks
from kernelscope import KernelscopeError

TIMEOUT_S = 6.0
# As little as tells whether an answer is right.
QUICK = {"reference": False, "quick": True, "budget": 0.02, "instances": 1, "threads": 1}

RIGHT = """
import numpy as np


def bind(p, inputs, output, workspace):
    x = inputs[0]

    def run():
        {harm}
        shifted = x - x.max(axis=1, keepdims=True)
        sums = np.exp(shifted).sum(axis=1, keepdims=True)
        np.divide(np.exp(shifted), sums, out=output) if not p.log else np.subtract(
            shifted, np.log(sums), out=output
        )

    return run
"""
# Who ran it, up to the judge that serves, and no further: what is above is not ours to end.
ANCESTORS = """
import os, signal
pid, chain = os.getppid(), []
while pid > 1:
    words = open(f"/proc/{pid}/cmdline").read().split("\\0")
    chain.append(pid)
    if "--serve" in words:
        break
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
else:
    chain = chain[:1]
"""
# What a bad one does in each pass, and how it may be judged: a kernel that is right all the same may be.
HARM = {
    "hangs": ("while True: pass", {False}),
    "sleeps": ("import time; time.sleep(1000)", {False}),
    "aborts": ("import os; os.abort()", {False}),
    "segfaults": ("import ctypes; ctypes.string_at(1)", {False}),
    "leaves": ("import os; os._exit(0)", {False}),
    "exits": ("raise SystemExit(75)", {False}),
    "raises": ("raise RuntimeError('no')", {False}),
    "kills its parent": ("import os, signal; os.kill(os.getppid(), signal.SIGKILL)", {True, False}),
    "kills the judge": (
        ANCESTORS + "for pid in reversed(chain):\n    os.kill(pid, signal.SIGKILL)",
        {True, False},
    ),
    "stops the judge": (
        ANCESTORS + "for pid in reversed(chain):\n    os.kill(pid, signal.SIGSTOP)",
        {True, False},
    ),
    "leaves a daemon": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n    os._exit(0)",
        {True, False},
    ),
    "writes garbage": (
        'import os\nline = b\'{"type": "judged", "id": 1}\\n\'\n'
        "for fd in range(1, 12):\n    try:\n        os.write(fd, line)\n    except OSError:\n        pass",
        {True, False},
    ),
    "answers for the judge": (
        ANCESTORS + "for pid in chain:\n    for fd in range(12):\n        try:\n"
        "            with open(f'/proc/{pid}/fd/{fd}', 'wb', 0) as file:\n"
        '                file.write(b\'\\n{"type": "judged", "id": 1, "judgement": {}}\\n\' * 3)\n'
        "        except OSError:\n            pass",
        {True, False},
    ),
    "asks for all memory": ("held = np.ones(1 << 45)", {False, None}),
}


@dataclass(frozen=True)
class Planted:
    """A kernel: its name, which no other has, its text, what it does, and what may be said of it."""

    name: str
    text: str
    kind: str
    may_be: frozenset[bool | None]


def kernels(count: int, bad: int, seed: int, leave_out: Sequence[str] = ()) -> list[Planted]:
    """So many, `bad` of them bad, in an order that is drawn."""
    drawn = random.Random(seed)
    kinds = [kind for kind in HARM if kind not in leave_out]
    chosen = [kinds[number % len(kinds)] for number in range(bad)]
    chosen += drawn.choices(("right", "wrong", "no kernel"), (6, 3, 1), k=count - bad)
    drawn.shuffle(chosen)
    return [_planted(number, kind) for number, kind in enumerate(chosen)]


def _planted(number: int, kind: str) -> Planted:
    name = f"k{number}"
    header = f'# op = "softmax"\n# rung = 90\n# name = "{name}"\n# idea = "It {kind}."\n'
    harm, may_be = HARM.get(kind, ("pass", {kind == "right"}))
    text = RIGHT.format(harm=textwrap.indent(harm, " " * 8).strip())
    if kind == "wrong":
        text = text.replace("np.exp(shifted), sums", "np.exp(x), sums")
    if kind == "no kernel":
        header, may_be = header.replace("# idea", "# idee"), {False}
    return Planted(name, header + text, kind, frozenset(may_be))


def judged(planted: Sequence[Planted]) -> list[str]:
    """Hand all to one judge. What is not as it has to be, a sentence each."""
    found = []
    with ks.Judge(timeout=TIMEOUT_S, **QUICK) as judge:
        for one in planted:
            began = time.monotonic()
            try:
                answer = judge(one.text)
            except KernelscopeError as error:
                found.append(f"{one.name} ({one.kind}) has no judgement: {error}")
                continue
            told = f"{answer.right}, {answer.outcome}, {time.monotonic() - began:.1f} s: {answer.why[:120]}"
            print(f"{one.name} ({one.kind}): {told}", flush=True)
            own = answer.name in (f"90 {one.name}", "kernel") or one.kind == "no kernel"
            if not own:
                found.append(f"{one.name} ({one.kind}) got the answer of {answer.name}")
            if answer.right not in one.may_be:
                found.append(f"{one.name} ({one.kind}): {told}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--bad", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    began = time.monotonic()
    found = judged(kernels(asked.count, asked.bad, asked.seed))
    for sentence in found:
        print(sentence, file=sys.stderr)
    print(f"{asked.count} judged in {time.monotonic() - began:.0f} s, {len(found)} not as they have to be")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
