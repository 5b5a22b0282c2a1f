"""Which isolated process a session gets: one for all sessions of a kind; one for each user's kernels, in
which nothing else runs. Each session of ONNX Runtime has a process of its own: after a pass the threads of a
session spin for a while and would take a core from the next session; in a stopped process they do not."""

from __future__ import annotations

import atexit
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.isolated.client import Child
from engine.isolated.forked import starting
from kernels.errors import InputError


@dataclass(frozen=True)
class Kind:
    """What the sessions of a kind are, and where they run.

    words: of its sessions. opens: the module whose `opened(*arguments)` makes one, imported in the process
    apart alone. stays: it is not stopped between two trains (see engine.isolated.client), and runs and times
    them by itself: for what no user wrote. One that does not is given its passes, over arrays of ours: its
    sessions have `hold` and `passes` (as engine.cpu.session's). alone: how many processes its sessions are
    spread over. interpreter: the Python that it runs in, asked when a process is started; None: this one's.
    folders: where what it imports is found, beside this program's own.
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
    "rung": Kind("our CPU rungs", "engine.isolated.open_rung"),
    "rung threads": Kind("our CPU rungs that take several threads", "engine.isolated.open_rung"),
    "empty": Kind("passes without a kernel", "engine.isolated.open_empty"),
    "empty awake": Kind("passes without a kernel", "engine.isolated.open_empty", stays=True),
}
IDLE = 3  # processes of the user's kernels that are kept beside the others

_children: OrderedDict[tuple[str, object], Child] = OrderedDict()
_used: dict[int, int] = {}  # sessions by process
_spare: list[Child] = []  # one for the next of a user's kernels


def register(name: str, kind: Kind) -> str:
    """A further kind, of a backend's sessions; its name. Raises InputError where another has that name."""
    if KINDS.setdefault(name, kind) != kind:
        raise InputError(f"two backends have sessions of a kind named {name!r}: one needs another name")
    return name


def child(kind: str, what: str = "", own: object = None) -> Child:
    """The process for sessions of this kind, started where there is none. own: what a user's kernels are
    told apart by, and what: their words; None where all are ours. Give it back with `release`."""
    key = (kind, own) if own is not None else (_free(kind), None)
    known = _children.get(key)
    if known is not None and known.lost is not None:
        _drop(key)
        known = None
    if known is None:
        known = _children[key] = _started(kind) if own is None else _fresh(what)
        known.users = own is not None
    _children.move_to_end(key)
    _used[id(known)] = _used.get(id(known), 0) + 1
    _trim()
    return known


def release(child: Child) -> None:
    """A session of it has ended."""
    if id(child) in _used:
        _used[id(child)] -= 1
    _trim()


def start_early(*kinds: str, alive: int = 1) -> None:
    """Start the processes of these kinds, which are then ready when the first session wants one. alive: how
    many sessions of a kind will be open at once."""
    for kind in kinds:
        for number in range(min(alive, KINDS[kind].alone)):
            key = (_numbered(kind, number), None)
            if key not in _children:
                _children[key] = _started(kind)


def _started(kind: str) -> Child:
    it = KINDS[kind]
    interpreter = it.interpreter() if it.interpreter is not None else ""
    return Child(it.words, it.opens, it.stays, interpreter, it.folders)


def _free(kind: str) -> str:
    """Of the processes that sessions of this kind may have, by name, the first with the fewest sessions."""
    names = [_numbered(kind, number) for number in range(KINDS[kind].alone)]
    return min(names, key=lambda name: _used.get(id(_children.get((name, None))), 0))


def _numbered(kind: str, number: int) -> str:
    return f"{kind} {number + 1}" if number else kind


def _fresh(what: str) -> Child:
    """A process that nothing has run in: the one that lies ready; and from the second on another in its
    place, since whoever has two kernels of a user's mostly has more."""
    fresh_child = _spare.pop() if _spare else Child(what)
    if any(own is not None for _, own in _children):
        _spare.append(Child("a user's kernel"))
    if fresh_child.lost is None and not fresh_child.ended_meanwhile(None):
        fresh_child.what = what
        return fresh_child
    return Child(what)


def pids() -> list[int]:
    """The isolated processes that there are now."""
    return [process.pid for process in (*_children.values(), *_spare) if process.lost is None]


def renew() -> None:
    """End the processes of CPU rungs, ours and users', whose sessions are all closed: what is measured next
    runs in new ones."""
    for key, process in [*_children.items()]:
        if (key[0].startswith("rung") or key[1] is not None) and not _used.get(id(process), 0):
            _drop(key)


def close_all() -> None:
    """End them all, and what they started."""
    while _spare:
        _spare.pop().close()
    for key in list(_children):
        _drop(key)
    starting.close_all()


def _trim() -> None:
    idle = [key for key, process in _children.items() if key[1] is not None and not _used.get(id(process), 0)]
    for key in idle[: max(0, len(idle) - IDLE)]:
        _drop(key)


def _drop(key: tuple[str, object]) -> None:
    process = _children.pop(key)
    _used.pop(id(process), None)
    process.close()


atexit.register(close_all)
