"""`python -m tests.zoo`: measure exported nets here, write docs/nets.md, fill nets with their weights."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.zoo import kept, page, shipped


def measure(wanted: argparse.Namespace) -> None:
    from tests.rehearsal import machine
    from tests.zoo import measuring

    try:
        path = measuring.measure(
            wanted.folder,
            wanted.nets,
            machine.look(),
            ("--batch", wanted.batch, "--budget", wanted.budget, *(["--no-tune"] if wanted.no_tune else [])),
            _say,
        )
    except ValueError as error:
        raise SystemExit(str(error)) from None
    _say(f"kept in {path}; {page.COMMAND} writes the page")


def write(wanted: argparse.Namespace) -> None:
    wanted.page.write_text(page.text(kept.every()), encoding="utf-8")


def fill(wanted: argparse.Namespace) -> None:
    try:
        if Path(wanted.net).is_dir():
            shipped.write_all(Path(wanted.net), wanted.file)
        else:
            shipped.write(wanted.net, wanted.file)
    except ValueError as error:
        raise SystemExit(str(error)) from None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.zoo", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("measure", help="compare the files of a folder and keep what came of it")
    one.add_argument("folder", type=Path, metavar="DIR")
    one.add_argument("nets", nargs="*", metavar="NET", help="all if none is given; others stay as they are")
    one.add_argument("--batch", default="4", metavar="N,N,…", help="of files that take any (%(default)s)")
    one.add_argument("--budget", default="1", metavar="S", help="seconds of samples a case (%(default)s)")
    one.add_argument(
        "--no-tune",
        action="store_true",
        help="run the kernels that are estimated to be fastest, where timing them all takes minutes a net",
    )
    one.set_defaults(run=measure)
    two = commands.add_parser("write", help="write the page from all that is kept")
    two.add_argument("page", nargs="?", type=Path, metavar="FILE", default=page.PAGE)
    two.set_defaults(run=write)
    three = commands.add_parser("fill", help="make ONNX files with weights of nets without them")
    ships = ", ".join(shipped.nets())
    three.add_argument("net", metavar="NET|DIR", help=f"one of {ships}; or a folder of exported files")
    three.add_argument("file", type=Path, metavar="FILE|DIR", help="the file, or the folder for all of them")
    three.set_defaults(run=fill)
    wanted = parser.parse_args()
    wanted.run(wanted)


if __name__ == "__main__":
    main()
