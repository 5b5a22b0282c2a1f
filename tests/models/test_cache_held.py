"""What lies in the cache is what was put there: a model that is another is built again, and what kills have
left is cleared."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from bench.commands import checks as machine
from bench.results.store import write_atomically
from engine.planning.choices import Part
from kernels.cache import atomic_file, clear_leftovers
from models import catalogue

pytestmark = pytest.mark.usefixtures("own_cache")

NAME = "lenet5-digits"


def test_a_model_that_was_swapped_is_built_again(caplog: pytest.LogCaptureFixture) -> None:
    path = catalogue.path(NAME)
    data = path.read_bytes()
    other = catalogue.path("lenet5-fashion").read_bytes()  # as good an ONNX file, of other weights
    stat = path.stat()
    path.write_bytes(other[: len(data)].ljust(len(data), b"\0"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert catalogue.path(NAME).read_bytes() == data
    (said,) = caplog.messages
    assert NAME in said
    assert "is not what was built there" in said
    caplog.clear()
    assert catalogue.path(NAME).read_bytes() == data
    assert caplog.messages == []


def test_a_model_without_its_sum_is_built_again(caplog: pytest.LogCaptureFixture) -> None:
    path = catalogue.path(NAME)
    (note,) = path.parent.glob("*.sha256")
    assert note.read_text() == hashlib.sha256(path.read_bytes()).hexdigest()
    note.unlink()
    path.write_bytes(b"anything")
    assert hashlib.sha256(catalogue.path(NAME).read_bytes()).hexdigest() == note.read_text()
    before = path.stat().st_ino
    assert catalogue.path(NAME).stat().st_ino == before, "and not once more"


def test_what_kills_have_left_is_cleared_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    left: list[Path] = []

    def killed(*_: object) -> None:
        """Instead of the rename: the process is gone, and the file in the making stays."""
        left.extend(path for path in tmp_path.rglob(".*.part") if path not in left)
        for path in left:
            if path.exists():
                path.rename(path.with_name(path.name + "~"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), atomic_file(folder / "a.npz"):
        killed()
    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(folder / "run.json", b"x")
    with pytest.raises(KeyboardInterrupt):
        Part("rungs", int).write({"a": "b"}, {}, 1)
    assert len(left) == 3, "each way of writing is known by its name"
    for path in left:
        path.with_name(path.name + "~").rename(path)
    kept = [
        folder / ".hidden",
        folder / "results.part",
        folder / ".notes.part",
        folder / ".a.npz.abcdefgh.part~",
    ]
    for path in kept:
        path.write_text("")
    (folder / ".link.abcdefgh.part").symlink_to(kept[0])
    assert clear_leftovers(tmp_path) == 0, "somebody may be writing them just now"
    for path in (*left, *kept):
        os.utime(path, (0, time.time() - 7200))
    assert clear_leftovers(tmp_path) == len(left)
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in kept)


@pytest.mark.parametrize("way", ["file", "/proc/kernelscope"])
def test_doctor_says_that_the_cache_cannot_be_written(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / way / "cache"))
    (check,) = (c for c in machine.checks() if (c.topic, c.name) == ("disk", "cache"))
    assert check.status == "missing"
    assert "cannot be written" in check.text
    assert "KERNELSCOPE_CACHE" in check.text
