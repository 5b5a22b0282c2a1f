"""`python -m tests.tasks --write`: docs/tasks.md with what the folders of the tasks say now, and the models
that these are timed beside; without --write, whether the page says so already."""

from __future__ import annotations

import argparse
import sys

from tests import tasks
from tests.tasks import yardsticks


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tasks", description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        yardsticks.write()
        tasks.PAGE.write_text(tasks.page(), encoding="utf-8")
        return 0
    same = tasks.page() == tasks.PAGE.read_text(encoding="utf-8")
    print(
        "docs/tasks.md is as the folders say"
        if same
        else "docs/tasks.md is older than the folders; --write it"
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
