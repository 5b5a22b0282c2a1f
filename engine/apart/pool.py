"""Which process apart a session is given: one for all sessions of a kind, and of each user's kernels one that
nobody else's run in. Sessions of ONNX Runtime have one each: the threads of a session that has run spin for a
while, and take a core from another's that runs beside them; in a process that is stopped they do not."""

from __future__ import annotations

import atexit
from collections import OrderedDict

from engine.apart.client import Child

STAYS = ("ort", "empty awake")  # kinds that are not stopped between two trains: see engine.apart.client
# What the sessions of each kind are, in words; `engine.apart.open_<first word>` opens them.
KINDS = {
    "engine": "our kernels on the CPU",
    "ort": "ONNX Runtime on the CPU",
    "rung": "our CPU rungs",
    "empty": "passes without a kernel",
    "empty awake": "passes without a kernel",
}
ALONE = {"ort": 6}  # kinds whose sessions have a process each, as long as there are no more than so many
IDLE = 3  # processes of the user's kernels that are kept beside the others

_children: OrderedDict[tuple[str, object], Child] = OrderedDict()
_used: dict[int, int] = {}  # sessions by process
_spare: list[Child] = []  # one for the next of a user's kernels


def child(kind: str, what: str, own: object = None) -> Child:
    """The process for sessions of this kind, started where there is none. own: what a user's kernels are
    told apart by; None where all are ours. Give it back with `done`."""
    key = (kind, own) if own is not None else (_free(kind), None)
    found = _children.get(key)
    if found is not None and found.lost is not None:
        _drop(key)
        found = None
    if found is None:
        found = _children[key] = _started(kind, what) if own is None else _fresh(what)
    _children.move_to_end(key)
    _used[id(found)] = _used.get(id(found), 0) + 1
    _trim()
    return found


def done(child: Child) -> None:
    """A session of it has ended."""
    if id(child) in _used:
        _used[id(child)] -= 1
    _trim()


def ahead(*kinds: str, alive: int = 1) -> None:
    """Start the processes of these kinds, which are then ready when the first session wants one. alive: how
    many sessions of a kind will be open at once."""
    for kind in kinds:
        for number in range(min(alive, ALONE.get(kind, 1))):
            key = (_numbered(kind, number), None)
            if key not in _children:
                _children[key] = _started(kind, KINDS[kind])


def _started(kind: str, what: str) -> Child:
    return Child(what, kind.split()[0], kind in STAYS)


def _free(kind: str) -> str:
    """Of the processes that sessions of this kind may have, by name, the first with the fewest sessions."""
    names = [_numbered(kind, number) for number in range(ALONE.get(kind, 1))]
    return min(names, key=lambda name: _used.get(id(_children.get((name, None))), 0))


def _numbered(kind: str, number: int) -> str:
    return f"{kind} {number + 1}" if number else kind


def _fresh(what: str) -> Child:
    """A process that nothing has run in: the one that lies ready; and from the second on another in its
    place, since whoever has two kernels of a user's mostly has more."""
    found = _spare.pop() if _spare else Child(what)
    if any(own is not None for _, own in _children):
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
