"""Which process apart a session is given: one for all sessions of a kind, and of each user's kernels one that
nobody else's run in."""

from __future__ import annotations

import atexit
from collections import OrderedDict

from engine.apart.client import Child

IDLE = 3  # processes of the user's kernels that are kept beside the others

_children: OrderedDict[tuple[str, object], Child] = OrderedDict()
_used: dict[int, int] = {}  # sessions by process
_spare: list[Child] = []  # one for the next of a user's kernels


def child(kind: str, what: str, own: object = None) -> Child:
    """The process for sessions of this kind, started where there is none. own: what a user's kernels are
    told apart by; None where all are ours. Give it back with `done`."""
    key = (kind, own)
    found = _children.get(key)
    if found is not None and found.lost is not None:
        _drop(key)
        found = None
    if found is None:
        found = _children[key] = Child(what) if own is None else _fresh(what)
    _children.move_to_end(key)
    _used[id(found)] = _used.get(id(found), 0) + 1
    _trim()
    return found


def done(child: Child) -> None:
    """A session of it has ended."""
    if id(child) in _used:
        _used[id(child)] -= 1
    _trim()


def ahead(*kinds: str) -> None:
    """Start the processes of these kinds, which are then ready when the first session wants one."""
    for kind in kinds:
        if (kind, None) not in _children:
            _children[kind, None] = Child(WHAT[kind])


# What they are for, in words.
WHAT = {
    "engine": "our kernels on the CPU",
    "ort": "ONNX Runtime on the CPU",
    "rung": "our CPU rungs",
    "empty": "passes without a kernel",
}


def _fresh(what: str) -> Child:
    """A process that nothing has run in: the one that lies ready, and another in its place, since whoever has
    one kernel of a user's mostly has the next soon."""
    found = _spare.pop() if _spare else Child(what)
    _spare.append(Child("a user's kernel"))
    if found.lost is None:
        found.what = what
        return found
    return Child(what)


def close_all() -> None:
    """End them all, and what they started."""
    while _spare:
        _spare.pop().close()
    for key in list(_children):
        _drop(key)


def _trim() -> None:
    idle = [key for key, held in _children.items() if key[1] is not None and not _used.get(id(held), 0)]
    for key in idle[: max(0, len(idle) - IDLE)]:
        _drop(key)


def _drop(key: tuple[str, object]) -> None:
    held = _children.pop(key)
    _used.pop(id(held), None)
    held.close()


atexit.register(close_all)
