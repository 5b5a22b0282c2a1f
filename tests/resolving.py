"""Whether what the pages say to install can be installed: `python -m tests.resolving`, in some
minutes.

For each supported Python: every extra of pyproject.toml, every combination of extras and groups that a page
gives to uv, and every file in locks/. uv only resolves: nothing is downloaded but what packages say of
themselves, and nothing is installed. A package that has no wheel for a Python counts as a failure, because
no page asks for a compiler. `uv run` resolves all extras together, for all Pythons: that is tried, too.

Exit code 0: all can be installed; 1: something cannot; 3: uv or the registry was not there, so nothing was
tried.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# What uv says where nobody answers.
_NOBODY = re.compile(r"error sending request|Failed to fetch|dns error|[Cc]onnection refused|timed out")


def extras() -> list[str]:
    """The extras of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return list(project["optional-dependencies"])


def combinations(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """The options `--extra` and `--group` of each uv command in these texts, each combination once. A page
    may name further extras in brackets behind a command: they stand for the one before."""
    found: dict[tuple[str, ...], None] = {}
    for text in texts:
        for written in re.findall(r"\buv run ((?:--(?:extra|group) [\w-]+ ?)+)", text):
            found[tuple(written.split())] = None
        for instead in re.findall(r"`(--extra [\w-]+)`", text):
            found[tuple(instead.split())] = None
    return list(found)


def pages() -> list[str]:
    return [path.read_text("utf-8") for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))]


def attempts(into: Path) -> Iterator[tuple[str, list[str]]]:
    """What is tried, in words, and the arguments of uv."""
    compiled = ("pip", "compile", "-q", "--only-binary", ":all:", "--output-file", str(into / "none"))
    ways = dict.fromkeys([*(("--extra", extra) for extra in extras()), *combinations(pages())])
    for python in PYTHONS:
        for way in ways:
            groups = [f"pyproject.toml:{word}" if before == "--group" else word
                      for before, word in zip(("", *way), way, strict=False)]  # fmt: skip
            yield f"{' '.join(way)}, Python {python}", [
                *compiled, "--python-version", python, "pyproject.toml", *groups,
            ]  # fmt: skip
        for lock in sorted((ROOT / "locks").glob("*.txt")):
            yield f"locks/{lock.name}, Python {python}", [
                *("pip", "install", "-q", "--dry-run", "--only-binary", ":all:", "--require-hashes"),
                *("--target", str(into / "nowhere"), "--python-version", python, "-r", str(lock)),
            ]  # fmt: skip


def tried(uv: str, arguments: Sequence[str], folder: Path) -> str:
    """Why it cannot be had, in the words of uv; "" if it can."""
    done = subprocess.run(
        [uv, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL
    )
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


def uv_here() -> str:
    """The path of uv: that of this environment, else that of the path; "" without one."""
    beside = Path(sys.prefix) / ("Scripts/uv.exe" if sys.platform == "win32" else "bin/uv")
    return str(beside) if beside.is_file() else shutil.which("uv") or ""


def main() -> int:
    uv = uv_here()
    if not uv:
        print("uv is not installed: nothing was tried", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "pyproject.toml", folder)
        whole = tried(uv, ["lock", "-q", "--python", sys.executable], folder)
        if _NOBODY.search(whole):
            print("the registry does not answer: nothing was tried", file=sys.stderr)
            return 3
        listed = list(attempts(folder))
        with ThreadPoolExecutor(2) as pool:  # uv itself asks for many things at once
            results = list(pool.map(lambda one: tried(uv, one[1], folder), listed))
    failed = [("uv run, all extras together", whole)] if whole else []
    failed += [(what, why) for (what, _), why in zip(listed, results, strict=True) if why]
    for what, why in failed:
        print(f"{what}: {why}", file=sys.stderr)
    print(f"{len(listed) + 1} ways to install, {len(failed)} fail")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
