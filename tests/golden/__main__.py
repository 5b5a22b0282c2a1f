"""`python -m tests.golden --write [NAME…]`: the golden files anew; without --write, what differs."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.golden.outputs import Command, commands, output
from tests.golden.store import changes, expected, keep, names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="only these; default: all")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    known = {command.name for command in commands()}
    if unknown := sorted(set(asked.name) - known):
        parser.error(f"no command is called {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    chosen = [command for command in commands() if not asked.name or command.name in asked.name]
    differ = 0
    for command in chosen:
        found = _output(command)
        before = expected(command.name) if command.name in names() else ""
        if found != before:
            differ += 1
            if asked.write:
                print(command.name)
            else:
                print(changes(before, found))
        if asked.write:
            keep(command.name, found)
    if asked.write and not asked.name:
        for name in names() - {command.name for command in chosen}:
            keep(name, None)
    print(f"{differ} of {len(chosen)} differ", file=sys.stderr)
    return int(differ > 0 and not asked.write)


def _output(command: Command) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return output(command, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
