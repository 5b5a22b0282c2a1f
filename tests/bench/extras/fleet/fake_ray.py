"""Ray as far as `bench.extras.fleet.on_ray` asks it: generators that run here, on machines that may die."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any


class RayError(Exception):
    """As ray.exceptions.RayError."""


class Stream:
    """What a generator task gives: a thing at a time. dies: after so many."""

    def __init__(self, made: Iterator[Any], dies: int | None) -> None:
        self._made, self._left = made, dies

    def __next__(self) -> Callable[[], Any]:
        if self._left == 0:

            def gone() -> Any:
                raise RayError("the node died\nand more")

            self._left = None
            self._made = iter(())
            return gone
        if self._left is not None:
            self._left -= 1
        value = next(self._made)
        return lambda: value


class FakeRay:
    """nodes: what each machine has. dies: by the number of the task started, after how many things said its
    machine dies."""

    def __init__(
        self, nodes: Sequence[dict[str, float]] = ({"CPU": 2.0},), dies: dict[int, int] | None = None
    ) -> None:
        self.exceptions = types.SimpleNamespace(RayError=RayError)
        self._nodes, self._dies = nodes, dies or {}
        self.asked: list[dict[str, Any]] = []
        self.begun: dict[str, Any] | None = None
        self.ended = False
        self.cancelled: list[Stream] = []

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        if options.get("address") == "nowhere":
            raise ConnectionError("no cluster\nthere")
        self.begun = options

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": node} for node in self._nodes]

    def cluster_resources(self) -> dict[str, float]:
        total: dict[str, float] = {}
        for node in self._nodes:
            for name, value in node.items():
                total[name] = total.get(name, 0) + value
        return total

    def remote(self, **options: Any) -> Callable[[Callable[..., Iterator[Any]]], Any]:
        assert options == {"max_retries": 0, "num_returns": "streaming"}

        def made(function: Callable[..., Iterator[Any]]) -> Any:
            def start(*arguments: Any) -> Stream:
                return Stream(function(*arguments), self._dies.get(len(self.asked)))

            def options_(**asked: Any) -> Any:
                self.asked.append(asked)
                return types.SimpleNamespace(remote=start)

            return types.SimpleNamespace(options=options_)

        return made

    def wait(
        self, streams: list[Stream], num_returns: int, timeout: float
    ) -> tuple[list[Stream], list[Stream]]:
        return streams[:num_returns], streams[num_returns:]

    def get(self, value: Callable[[], Any]) -> Any:
        return value()

    def cancel(self, stream: Stream, force: bool) -> None:
        self.cancelled.append(stream)

    def shutdown(self) -> None:
        self.ended = True
