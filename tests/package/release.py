"""`python -m tests.package.release` (`make release`): the source distribution and the wheel of this version,
in dist/, looked at in every way; and the section of the version in CHANGELOG.md, which is written where it is
missing. Nothing is uploaded."""

from __future__ import annotations

import datetime
import re
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from bench.words import version
from tests.package import building

CHANGELOG = building.ROOT / "CHANGELOG.md"
DIST = building.ROOT / "dist"
# Each in an environment of its own, kept by uv. Not asked: W002, the licence lies beside the program as well;
# W004, the name of a kernel's file is no module's.
CHECKERS = (("twine", "check", "--strict"), ("check-wheel-contents", "--ignore", "W002,W004"))


def with_section(text: str, number: str, day: datetime.date) -> str:
    """The changelog with a section of this version: what was below "Unreleased" is its content. The same text
    where it has one. Raises ValueError where there is nothing to release, or a section is empty."""
    if found := re.search(rf"^## {re.escape(number)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        if not found[1].strip():
            raise ValueError(f"the section of {number} is empty")
        return text
    unreleased = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if unreleased is None or not unreleased[1].strip():
        raise ValueError(f"there is neither a section of {number} nor anything below ## Unreleased")
    heading = f"## Unreleased\n\n## {number}, {day.isoformat()}\n"
    return text[: unreleased.start()] + heading + text[unreleased.start() + len("## Unreleased\n") :]


def main() -> int:
    number = version.version()
    text = CHANGELOG.read_text(encoding="utf-8")
    try:
        released = with_section(text, number, datetime.date.today())
    except ValueError as error:
        return _stop(f"CHANGELOG.md: {error}")
    if released != text:
        CHANGELOG.write_text(released, encoding="utf-8")
        return _stop(f"CHANGELOG.md has a section of {number} now: read it, commit it, and do this again")
    commit = version.commit()
    if not commit or commit.endswith("+"):
        return _stop("a release is of a commit: commit what has changed (`git status` names it) first")
    with tempfile.TemporaryDirectory() as folder:
        built, faults = _built(Path(folder))
        for fault in faults:
            print(f"FAILED  {fault}", file=sys.stderr)
        if faults:
            return 1
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        for path in built:
            shutil.copy2(path, DIST)
            print(f"{DIST.name}/{path.name}  {path.stat().st_size:,} bytes  sha256 {building.digest(path)}")
    print(f"{number}, commit {commit}. Nothing was uploaded.")
    return 0


def _built(folder: Path) -> tuple[tuple[Path, Path], list[str]]:
    """Both distributions, and what is wrong with them."""
    sdist, wheel = building.build(folder / "one")
    again = building.build(folder / "two")
    faults = [f"{one.name} is another the second time" for one, two in zip((sdist, wheel), again, strict=True)
              if building.digest(one) != building.digest(two)]  # fmt: skip
    if building.digest(building.build_wheel(folder / "three")) != building.digest(wheel):
        faults.append("the wheel of the source distribution is not that of the checkout")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    if building.digest(building.build_wheel(folder / "four", unpacked)) != building.digest(wheel):
        faults.append("the unpacked source distribution builds another wheel")
    faults += [f"{wheel.name}: {fault}" for fault in building.wheel_faults(wheel)]
    faults += [f"{sdist.name}: {fault}" for fault in building.sdist_faults(sdist)]
    for checker in CHECKERS:
        building.run(building.uv(), "tool", "run", *checker, wheel)
    return (sdist, wheel), faults


def _stop(why: str) -> int:
    print(why, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
