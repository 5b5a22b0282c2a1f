"""What is kept between runs of the tests: asked for again it is the same, and what differs is another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import keeping


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(keeping, "FOLDER", tmp_path / "built")
    keeping.forget()
    yield tmp_path / "built"
    keeping.forget()


def test_it_is_made_once(folder: Path) -> None:
    assert keeping.kept("one", lambda: b"made") == b"made"
    assert keeping.kept("one", lambda: b"made again") == b"made"
    assert keeping.kept("other", lambda: b"") == b""
    assert {path.name for path in folder.iterdir()} == {"one", "other"}


def test_what_could_not_be_made_is_not_kept(folder: Path) -> None:
    def fails() -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        keeping.kept("one", fails)
    assert keeping.kept("one", lambda: b"made") == b"made"
    assert [path.name for path in folder.iterdir()] == ["one"]


def test_no_part_may_lean_over_into_the_next() -> None:
    told = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc")]
    assert len({keeping.digest(*parts) for parts in told}) == len(told)
    assert keeping.digest("é") == keeping.digest("é".encode())


def test_what_is_old_goes_and_so_does_what_was_compiled_otherwise(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping.kept("old", lambda: b"")
    keeping.kept("new", lambda: b"")
    os.utime(folder / "old", (0, 0))
    here = keeping.cubins()
    here.mkdir()
    keeping.forget()
    assert keeping.cubins() == here
    assert {path.name for path in folder.iterdir()} == {"new", here.name}
    keeping.forget()
    monkeypatch.setattr(keeping, "_WHO_COMPILES", keeping._WHO_COMPILES[1:])
    assert keeping.cubins() != here
    assert {path.name for path in folder.iterdir()} == {"new"}
