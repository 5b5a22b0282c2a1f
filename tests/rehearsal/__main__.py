"""The rehearsal: `make rehearse`, or `python -m tests.rehearsal` with any interpreter that has what it takes.

It walks the product as a user would, from the first command on, and says what does not hold. It goes on where
it was cut, for as long as the tree does not change. Exit codes: 0 all well; 1 a step failed, or a command is
not known; 2 bad usage; 3 steps are left, as --minutes were over; 130 cancelled.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench.results.store import write_atomically
from kernels.errors import InputError
from tests.rehearsal import beyond, content, report, running
from tests.rehearsal import machine as machines
from tests.rehearsal import plan as plans
from tests.rehearsal import state as states
from tests.rehearsal.schedule import Schedule
from tests.rehearsal.steps import BAD, Step

LEFT, CANCELLED = 3, 130


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.rehearsal", description=(__doc__ or "").partition("\n\n")[2]
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="steps whose name or group has it"
    )
    parser.add_argument("--part", default="", metavar="N/M", help="the N-th of M pieces")
    parser.add_argument("--minutes", type=float, metavar="M", help="start no step after so long")
    parser.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="steps side by side (default: by the cores)"
    )
    parser.add_argument(
        "--first-ever", action="store_true", help="with empty caches, then warm: the seconds of each"
    )
    parser.add_argument("--standin", action="store_true", help="against a simulated GPU")
    parser.add_argument("--again", action="store_true", help="forget what was rehearsed of this tree")
    parser.add_argument("--list", action="store_true", help="say what would be run, and run nothing")
    parser.add_argument(
        "--page",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="FILE",
        help="write the page after each step, to FILE (default: docs/results/rehearsal-<machine>.md, without "
        "the tables of steps); on a machine with a GPU that page is written when no step is left",
    )
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="where it keeps what it knows (runs/rehearsal/…)"
    )
    parser.add_argument("--hash", action="store_true", help="print the hash of the tree's content")
    parser.add_argument(
        "--files",
        action="store_true",
        help="print what that hash is of, a file a line, to compare two copies",
    )
    parser.add_argument(
        "--whose", action="store_true", help="say whether the pages in docs/results are of this tree"
    )
    asked = parser.parse_args(given)
    if asked.part and not _part(asked.part):
        parser.error(f"--part {asked.part} is not N/M with N from 1 to M, as in 1/3")
    return asked


def _part(text: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    numbers = (int(found[1]), int(found[2])) if found else (0, 0)
    return numbers if 1 <= numbers[0] <= numbers[1] else None


def chosen(steps: Sequence[Step], only: Sequence[str], part: str) -> list[Step]:
    """Those that were asked for, in order."""
    found = [
        s for s in steps if not only or any(text.lower() in f"{s.group} {s.name}".lower() for text in only)
    ]
    numbers = _part(part)
    return plans.part(found, *numbers) if numbers else found


def main(given: Sequence[str] | None = None) -> int:
    asked = _arguments(given)
    tree = content.content_hash()
    if asked.files:
        print("\n".join(content.lines()))
        return 0
    if asked.hash:
        print(tree)
        return 0
    if asked.whose:
        print(*report.of_this_tree(tree), sep="\n")
        return 0
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background: the commands would ignore Ctrl-C as well, and some are ended by it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    machine = machines.look(asked.standin)
    steps = plans.plan(machine, asked.first_ever)
    wanted = chosen(steps, asked.only, asked.part)
    if not wanted:
        print(
            f"no step has {' or '.join(asked.only)} in its name or group; --list names them", file=sys.stderr
        )
        return 2
    kind = beyond.FIRST_EVER if asked.first_ever else ""
    folder = (
        asked.state or content.ROOT / "runs" / "rehearsal" / f"{tree[:12]}-{machine.short}{kind}"
    ).absolute()
    state = (not asked.again and states.load(folder, tree, f"{machine.short}{kind}")) or _begun(
        machine, tree, kind
    )
    if asked.list:
        _print(wanted, state)
        return 0
    print(
        f"{len(wanted)} steps on {machine.gpu or f'no GPU ({machine.no_gpu})'}; kept in {folder}",
        file=sys.stderr,
    )
    if asked.page is not None:  # one that cannot be written is told before anything runs, not after an hour
        try:
            _write_page(steps, state, asked.page)
        except InputError as error:
            print(error, file=sys.stderr)
            return 2
    code = _rehearse(steps, wanted, state, folder, machine, asked)
    _print(wanted, state)
    print(f"every step: {_write_page(steps, state, folder / 'page.md')}", file=sys.stderr)
    left = [step for step in steps if report.outcome_of(step, state).outcome == report.NOT_YET]
    if asked.page is not None or (machine.gpu and not machine.standin and not left):
        print(f"page: {_write_page(steps, state, asked.page)}", file=sys.stderr)
    if content.content_hash() != tree:
        print(
            "the tree changed meanwhile: what was rehearsed is neither of the old one nor of the new",
            file=sys.stderr,
        )
        return 1
    return code


def _begun(machine: machines.Machine, tree: str, kind: str) -> states.State:
    from bench.measure import environment

    return states.State(
        content=tree,
        machine=f"{machine.short}{kind}",
        gpu=machine.gpu,
        no_gpu=machine.no_gpu,
        environment=environment.collect(),
    )


def _write_page(steps: Sequence[Step], state: states.State, named: Path | None) -> Path:
    """The whole page to the file that is named; the short one to docs/results if none is."""
    short = named in (None, Path())
    path = report.page_path(state.machine) if short or named is None else named
    write_atomically(path, report.page(steps, state, short).encode())
    return path


def _rehearse(
    steps: list[Step],
    wanted: list[Step],
    state: states.State,
    folder: Path,
    machine: machines.Machine,
    asked: argparse.Namespace,
) -> int:
    """Run what is wanted; the exit code."""
    stop = threading.Event()
    runner = running.Runner(folder / "work", machine, stop)
    deadline = time.monotonic() + 60 * asked.minutes if asked.minutes is not None else None

    def kept() -> None:
        # As it goes: who has a machine for so long and no longer may be cut at any moment.
        if asked.page is not None:
            _write_page(steps, state, asked.page)

    schedule = Schedule(steps, state, folder, runner, asked.jobs or _jobs(), deadline, kept=kept)
    cancelled = False
    try:
        schedule.run(wanted)
    except KeyboardInterrupt:
        cancelled = True
        print("cancelled: ending what runs", file=sys.stderr)
    finally:
        stop.set()
        schedule.close()
    outcomes = [report.outcome_of(step, state) for step in wanted]
    left = [outcome.name for outcome in outcomes if outcome.outcome == report.NOT_YET]
    print(report.counts(outcomes), file=sys.stderr)
    if left:
        print(
            f"{len(left)} are left, from “{left[0]}” on: the same command goes on with them", file=sys.stderr
        )
    if cancelled:
        return CANCELLED
    return 1 if any(o.outcome in BAD for o in outcomes) else LEFT if left else 0


def _jobs() -> int:
    """So many that no core is idle for long, as a step mostly waits for one: what is timed meanwhile is not
    looked at."""
    import os

    return max(1, 5 * (os.cpu_count() or 1) // 8)


def _print(steps: Sequence[Step], state: states.State) -> None:
    from rich.console import Console

    Console(highlight=False, width=None if sys.stdout.isatty() else 200).print(report.table(steps, state))


if __name__ == "__main__":
    sys.exit(main())
