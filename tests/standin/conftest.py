"""Commands of the program as a user types them, on a machine that has the stand-in GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import main
from tests import preloaded
from tests.standin import environment

ROOT = Path(main.__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They take longest, and so begin first: no process is left alone with them when all else is done."""
    here = str(Path(__file__).parent) + os.sep
    items.sort(key=lambda item: not str(item.path).startswith(here))
    for item in items:
        if str(item.path).startswith(here) and "machine" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the program keeps between runs: nothing at first."""
    return tmp_path_factory.mktemp("standin-cache")


def choices(cache: Path) -> dict[tuple[str, str], object]:
    """What was chosen by time, by the file of its case and the part of it."""
    read = {path.name: json.loads(path.read_bytes())["value"] for path in (cache / "tuned").rglob("*.json")}
    parts = ("rungs", "paces", "layouts", "nets", "early", "reference")
    return {(name, part): held[part] for name, held in read.items() for part in parts if part in held}


class Machine:
    """A folder to work in, and the program."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self._environment = environment({**os.environ, "KERNELSCOPE_CACHE": str(cache)})

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Python with these words. None of the texts is about what it loads."""
        if words[0] == "-c":
            words = ("-c", preloaded.MARK + words[1], *words[2:])
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def python(self, *words: str, status: int | None = 0) -> tuple[str, str]:
        """What it said on standard output and on standard error, without a traceback. status: None where 0
        and 1 are right, as of a verdict that rests on times."""
        with self.start(*words) as process:
            try:
                out, err = process.communicate(timeout=250)
            finally:
                process.kill()
        right = (0, 1) if status is None else (status,)
        assert process.returncode in right, f"{process.returncode}: {out[-2000:]}\n{err[-4000:]}"
        assert "Traceback" not in err
        return out, err

    def main(self, *words: str, status: int | None = 0) -> tuple[str, str]:
        """A command of main.py."""
        return self.python(str(ROOT / "main.py"), *words, status=status)


@pytest.fixture
def machine(tmp_path: Path, cache: Path) -> Machine:
    return Machine(tmp_path, cache)


def told(found: Sequence[object]) -> list[str]:
    """Dispositions of measurements."""
    return [str(getattr(each, "disposition", "")) for each in found]
