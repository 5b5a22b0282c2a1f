"""The isolated processes (engine.isolated.client.Child) that there are, and which of them a session gets.

All sessions of a kind share one process, or a few. A user's kernels share a process with nothing else. Up to
six sessions of ONNX Runtime have a process each: after a pass the threads of such a session spin for a while
and would take a core from the next session; in a stopped process they do not.
"""

from __future__ import annotations

import atexit
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.isolated.client import Child
from engine.isolated.forked import starting
from kernels import confine
from kernels.errors import InputError


@dataclass(frozen=True)
class Kind:
    """A kind of sessions, and the processes that they run in.

    words: the sessions in words, for errors. opens: the module whose `opened(*arguments)` makes a session;
    only the isolated process imports it. stays: the process is not stopped between two trains (see
    engine.isolated.client), and runs and times them by itself; only for code that no user wrote. Else the
    parent starts each pass, over arrays of its own: a session then has `hold` and `passes`, as that of
    engine.cpu.session. alone: over how many processes the sessions are spread (1: all share one).
    interpreter: a function that gives the path of the process's Python, called when a process is started
    (None: the Python of this process). folders: more folders in which the process finds modules.
    """

    words: str
    opens: str
    stays: bool = False
    alone: int = 1
    interpreter: Callable[[], str] | None = None
    folders: tuple[Path, ...] = ()


KINDS = {
    # Of the kernels that come with this program alone: a user's run in processes of their own.
    "engine": Kind("our kernels on the CPU", "engine.isolated.open_engine", stays=True),
    "ort": Kind("ONNX Runtime on the CPU", "engine.isolated.open_ort", stays=True, alone=6),
    "rung": Kind("our CPU rungs", "engine.isolated.open_engine"),
    "rung threads": Kind("our CPU rungs that take several threads", "engine.isolated.open_engine"),
    "empty": Kind("passes without a kernel", "engine.isolated.open_empty"),
    "empty awake": Kind("passes without a kernel", "engine.isolated.open_empty", stays=True),
}
IDLE = 3  # processes of users' kernels that are kept though no session is open in them

_children: OrderedDict[tuple[str, object], Child] = OrderedDict()
_open_sessions: dict[int, int] = {}  # how many, by the id() of the Child
_spare: list[Child] = []  # processes for the next kernel of a user; nothing has run there


def register(name: str, kind: Kind) -> str:
    """Add the kind of a backend's sessions. Returns the name. Raises InputError where a different kind has
    that name."""
    if KINDS.setdefault(name, kind) != kind:
        raise InputError(f"two backends have sessions of a kind named {name!r}: one needs another name")
    return name


def child(kind: str, what: str = "", own: object = None) -> Child:
    """The process for one more session of this kind; started if there is none, or if it has ended. Call
    `release` when the session is closed.

    own: for a user's kernel, a value that says whose it is: the same (kind, own) gets the same process, and
    nothing else runs there. None for kernels of this program. what: the user's kernel in words, for errors.
    """
    key = (kind, own) if own is not None else (_least_busy(kind), None)
    known = _children.get(key)
    if known is not None and (known.lost is not None or (own is not None and _outdated(known))):
        _drop(key)
        known = None
    if known is None:
        known = _children[key] = _started(kind) if own is None else _unused_child(what)
        known.users = own is not None
        _open_sessions.pop(id(known), None)  # of one that was thrown away without its end, at that address
    _children.move_to_end(key)
    _open_sessions[id(known)] = _open_sessions.get(id(known), 0) + 1
    _trim()
    return known


def release(child: Child) -> None:
    """One session in this process was closed. Processes of users' kernels that are idle may be ended."""
    if id(child) in _open_sessions:
        _open_sessions[id(child)] -= 1
    _trim()


def start_early(*kinds: str, alive: int = 1) -> None:
    """Start the processes of these kinds now, so that the first session need not wait. alive: how many
    sessions of each kind will be open at once. Returns before the processes are ready."""
    for kind in kinds:
        for number in range(min(alive, KINDS[kind].alone)):
            key = (_numbered(kind, number), None)
            if key not in _children:
                _children[key] = _started(kind)


def _started(kind: str) -> Child:
    it = KINDS[kind]
    interpreter = it.interpreter() if it.interpreter is not None else ""
    return Child(it.words, it.opens, it.stays, interpreter, it.folders)


def _least_busy(kind: str) -> str:
    """The name of the process of this kind that has the fewest sessions."""
    names = [_numbered(kind, number) for number in range(KINDS[kind].alone)]
    return min(names, key=lambda name: _open_sessions.get(id(_children.get((name, None))), 0))


def _numbered(kind: str, number: int) -> str:
    """The name of process `number` (from 0) of a kind: "ort", "ort 2", …"""
    return f"{kind} {number + 1}" if number else kind


def _unused_child(what: str) -> Child:
    """A process in which nothing has run, for a user's kernel: the spare one, or a new one. From the second
    kernel on a new spare one is started, since a user with two kernels mostly has more."""
    while _spare and _outdated(_spare[-1]):
        _spare.pop().close()
    fresh_child = _spare.pop() if _spare else Child(what)
    if any(own is not None for _, own in _children):
        _spare.append(Child("a user's kernel"))
    if fresh_child.lost is None and not fresh_child.ended_meanwhile(None):
        fresh_child.what = what
        return fresh_child
    return Child(what)


def _outdated(child: Child) -> bool:
    """Whether a process without a session was started before a folder was named that kernels may not write
    to: one in it could."""
    return child.keeps != confine.keeps() and not _open_sessions.get(id(child), 0)


def pids() -> list[int]:
    """The process ids of all isolated processes that run now."""
    return [process.pid for process in (*_children.values(), *_spare) if process.lost is None]


def renew() -> None:
    """End the processes of CPU rungs, of this program and of users, that have no open session. What is
    measured next runs in new processes."""
    for key, process in [*_children.items()]:
        if (key[0].startswith("rung") or key[1] is not None) and not _open_sessions.get(id(process), 0):
            _drop(key)


def close_all() -> None:
    """End all isolated processes, and all processes that they started. Also called at exit."""
    while _spare:
        _spare.pop().close()
    for key in list(_children):
        _drop(key)
    starting.close_all()


def _trim() -> None:
    """Of users' processes without a session keep the IDLE that were used last; end the others."""
    idle = [
        key
        for key, process in _children.items()
        if key[1] is not None and not _open_sessions.get(id(process), 0)
    ]
    for key in idle[: max(0, len(idle) - IDLE)]:
        _drop(key)


def _drop(key: tuple[str, object]) -> None:
    process = _children.pop(key)
    _open_sessions.pop(id(process), None)
    process.close()


atexit.register(close_all)
