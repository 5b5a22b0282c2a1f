"""Does a pass take the same whether its process runs a train by itself or is given one pass after the other?

`python -m tests.engine.isolated.both_ways` times one and the same pass both ways, in turns, for passes of
about 5 to 300 µs: a session that stays awake, as those of ONNX Runtime, and one that is stopped before and
after each pass, as those of a user's kernels."""

from __future__ import annotations

import argparse
import statistics

import numpy as np

from engine.isolated import pool
from engine.isolated.forked import starting
from engine.isolated.session import IsolatedSession

MODULE = "tests.engine.isolated.twice_session"
# Calls in a pass of about so many µs, on the machine that docs/trust.md has figures of.
TIMES = {2: 2, 7: 9, 30: 45, 300: 450, 1000: 1500}


def opened(stays: bool, nbytes: int, times: int) -> IsolatedSession:
    kind = f"twice {stays}"
    if kind not in pool.KINDS:
        pool.register(kind, pool.Kind("passes timed both ways", MODULE, stays))
    session = IsolatedSession(kind, "passes timed both ways", 1, (nbytes, times))
    session.bind({"x": np.random.default_rng(0).standard_normal(nbytes // 4).astype(np.float32)})
    return session


def compared(times: int, turns: int, nbytes: int = 4096, sample_ns: float = 4e6) -> tuple[list[float], ...]:
    """Nanoseconds a pass by itself, and given, a sample a turn each."""
    sessions = [opened(stays, nbytes, times) for stays in (True, False)]
    taken: tuple[list[float], list[float]] = [], []
    try:
        pass_ns = max(1000.0, min(sessions[0].time_runs(4) / 4 for _ in range(5)))
        count = max(1, round(sample_ns / pass_ns))
        for turn in range(turns + 1):
            for which in (0, 1) if turn % 2 else (1, 0):
                ns = sessions[which].time_runs(count) / count
                if turn:
                    taken[which].append(ns)
        return *taken, [sessions[1].stirring_ns]
    finally:
        for session in sessions:
            session.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=40)
    turns = parser.parse_args().turns
    starting.fork_here()  # as a worker's
    print("| a pass of about | by itself | given | given / by itself | taken off |\n|--:|--:|--:|--:|--:|")
    for about, times in TIMES.items():
        alone, given, (off,) = compared(times, turns)
        # Low quartiles: what the machine does meanwhile makes a sample longer.
        low = [statistics.quantiles(ns, n=4)[0] for ns in (alone, given)]
        print(
            f"| {about} µs | {low[0] / 1000:.2f} µs | {low[1] / 1000:.2f} µs | {low[1] / low[0]:.3f} "
            f"| {off / 1000:.2f} µs |",
            flush=True,
        )


if __name__ == "__main__":
    main()
    pool.close_all()
