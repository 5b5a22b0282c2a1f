"""An isolated process: sessions whose kernels are Python, and nothing else.

It holds plans, rungs and their arrays, and the socket that it is asked through. It has no clock that counts,
no expected answer, no word of the worker's. It reads no file of the program's but its modules.
`python -m engine.isolated.child PARENT [MODULE]` serves until the other end is gone.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import pickle
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import numpy as np

from engine.isolated import arrays, channel
from engine.isolated.memory import Spec, attach
from engine.isolated.messages import TOOK, TRAIN, Call, Error, Opened, OutputReply
from engine.isolated.slots import Copies, views
from kernels import confine
from kernels.processes import die_with_parent, stop_here, unlimited


def opener(name: str) -> Any:
    """The module that opens sessions of a kind (engine.isolated.pool.Kind.opens), loaded when first asked
    for."""
    return importlib.import_module(name)


@dataclass
class HeldSession:
    """A session with its slots: one for what is bound, and those of trains."""

    session: Any
    plain: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None = None
    copies: list[Copies] = field(default_factory=list)


class Server:
    """Answers what the parent asks."""

    def __init__(self) -> None:
        self._sessions: dict[int, HeldSession] = {}
        self._blocks: dict[int, np.ndarray] = {}

    # ------------------------------------------------------------------------------------------ the loop

    def serve(self, end: channel.Channel) -> None:
        encode = msgspec.msgpack.encode
        while True:
            kind, body, fds = end.receive()
            stops = awake = False
            try:
                if kind == channel.TRAIN:
                    number, ahead, count, each, awake, stops = TRAIN.unpack(body)
                    if awake:
                        reply = b"".join(map(TOOK.pack, _timed(self._sessions[number], ahead, count, each)))
                    else:
                        after_pass = stop_here if stops else partial(_asked_on, end)
                        self._sessions[number].session.passes(ahead, count, after_pass)
                        reply = b""
                else:
                    reply = encode(self._answered(body, fds))
            except BaseException as error:  # whatever a kernel raises
                end.send(channel.ERROR, encode(Error(type(error).__name__, str(error)[:4000])))
                if stops and not awake:
                    stop_here()  # what is waited for
            else:
                end.send(kind, reply)

    def _answered(self, body: bytes, fds: list[int]) -> Any:
        call: Call = pickle.loads(body)  # the parent's, who is trusted
        descriptors = iter(fds)
        for number, path, nbytes in call.blocks:
            self._blocks[number] = attach(next(descriptors, -1), path, nbytes, own=True)
        for number in call.forget:
            self._blocks.pop(number, None)
        arguments = list(arrays.loaded(call.arguments, self._blocks))
        if call.memory is not None:
            arguments.append(attach(next(descriptors, -1), *call.memory, own=False))
        return getattr(self, f"do_{call.do}")(call.number, *arguments)

    def do_note(self, number: int) -> None:
        """Nothing but the blocks that came with it."""

    # --------------------------------------------------------------------------------------- what is asked

    def do_open(self, number: int, opens: str, *arguments: Any) -> Opened:
        session = opener(opens).opened(*arguments)
        self._sessions[number] = HeldSession(session)
        return _told(session)

    def do_hold(
        self,
        number: int,
        inputs: Mapping[str, Spec],
        outputs: Mapping[str, Spec],
        count: int,
        timed: bool,
        memory: np.ndarray,
    ) -> bool | None:
        """Map what a session's inputs are read from, and its outputs written to. Of what is not timed:
        whether its passes read and write there themselves."""
        session = self._sessions[number]
        specs = {f"in {n}": s for n, s in inputs.items()} | {f"out {n}": s for n, s in outputs.items()}
        arrays_by_name = views(memory, specs, count)
        input_arrays = {name: arrays_by_name[f"in {name}"] for name in inputs}
        output_arrays = {name: arrays_by_name[f"out {name}"] for name in outputs}
        if not timed:
            session.plain = (
                {n: a[0, ...] for n, a in input_arrays.items()},
                {n: a[0, ...] for n, a in output_arrays.items()},
            )
            if in_place := hasattr(session.session, "hold"):
                session.session.hold(*session.plain)
            return in_place
        to, of = session.session.given, session.session.answers()
        session.copies = [
            (
                [(to[name], array[k, ...]) for name, array in input_arrays.items()],
                [(array[k, ...], of[name]) for name, array in output_arrays.items()],
            )
            for k in range(count)
        ]
        return None

    def do_bind(self, number: int) -> None:
        session = self._sessions[number]
        assert session.plain is not None
        if hasattr(session.session, "bind"):  # its inputs lie on a device
            session.session.bind(session.plain[0])
            return
        for name, array in session.session.given.items():
            np.copyto(array, session.plain[0][name])

    def do_run(self, number: int) -> None:
        self._sessions[number].session.run()

    def do_fetch(self, number: int) -> tuple[OutputReply, ...]:
        session = self._sessions[number]
        assert session.plain is not None
        return tuple(
            _answer(name, array, session.plain[1].get(name))
            for name, array in session.session.answers().items()
        )

    def do_ask(self, number: int, name: str, *arguments: Any) -> Any:
        """Any other question of a session's own."""
        return getattr(self._sessions[number].session, name)(*arguments)

    def do_cold(self, number: int) -> None:
        from engine.machine import host

        host.overwrite_caches()

    def do_close(self, number: int) -> None:
        session = self._sessions.pop(number, None)
        if session is not None:
            session.session.close()


def _asked_on(end: channel.Channel) -> None:
    """A pass is done: wait until the next is to begin, where nobody can see that this process has stopped."""
    end.send(channel.PASS)
    end.receive()


def _timed(held: HeldSession, ahead: int, count: int, of_a_part: int) -> list[int]:
    """Nanoseconds of the parts of a train, of so many passes each (the last may have fewer), by this
    process's own clock, which is believed where nothing of a user's runs: who waits elsewhere for untimed
    passes to end takes a core from the timed ones."""
    each, before, slots = held.session.each, held.copies[-1:] * ahead, held.copies[:count]
    if before:
        each(before)
    clock = time.perf_counter_ns
    ends = [clock()]
    for part in [slots[k : k + of_a_part] for k in range(0, count, of_a_part)]:
        each(part)
        ends.append(clock())
    return [end - begin for begin, end in itertools.pairwise(ends)]


def _told(session: Any) -> Opened:
    def specs(held: Mapping[str, np.ndarray]) -> dict[str, tuple[tuple[int, ...], str]]:
        return {name: (array.shape, array.dtype.name) for name, array in held.items()}

    return Opened(
        phases=dict(session.phases),
        memory=dict(session.memory),
        facts=dict(session.facts),
        inputs=specs(session.given),
        outputs=specs(session.answers()),
    )


def _answer(name: str, array: np.ndarray, slot: np.ndarray | None) -> OutputReply:
    """An output, laid into its slot where it is of that shape."""
    if slot is not None and slot.shape == array.shape and slot.dtype == array.dtype:
        np.copyto(slot, array)
        return OutputReply(name, array.shape, array.dtype.name)
    return OutputReply(name, array.shape, array.dtype.name, array.tobytes())


def main(serve: Callable[[channel.Channel], None] | None = None) -> int:
    end = channel.of_child()
    die_with_parent(int(sys.argv[1]))
    unlimited()
    confine.hide_memory()  # by the kernels of other processes
    confine.forbid_tracing()
    if not any(sys.argv[2:]):  # for what a user wrote
        if confine.walled():
            opener("engine.isolated.open_engine").opened.find_libraries()
            confine.shut_in(end.fd)
            die_with_parent(int(sys.argv[1]))  # which whoever becomes another user has to say again
        else:
            confine.forbid_background_work()
    try:
        for opens in filter(None, sys.argv[2:]):
            with contextlib.suppress(Exception):  # told where a session is opened
                opener(opens)
        (serve or Server().serve)(end)
    except channel.ChannelClosed:
        return 0
    return 0


if __name__ == "__main__":
    status = main()
    os._exit(status)  # a kernel's threads keep nobody waiting
