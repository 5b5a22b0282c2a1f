"""What a received record names stays in its folder: nothing elsewhere is read, and nothing written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import main
from bench.results import gallery
from bench.results.event_files import events_in
from bench.results.folders import copy, open_folder
from bench.results.inside import inside
from bench.results.store import RESULTS_FILE
from bench.results.thin import thin
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.profile import KIND as PROFILE
from kernels.errors import InputError
from tests.bench.results import received
from tests.bench.results.test_folders import ladder, profile, run

SECRET = b"nobody's business"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    return path


def lines_with(path: Path, change: Any) -> None:
    """Change every line of a run's results, and take its checksum away."""
    lines = [msgspec.json.decode(line) for line in (path / RESULTS_FILE).read_bytes().splitlines()]
    for line in lines:
        line.pop("sum", None)
        change(line)
    (path / RESULTS_FILE).write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("name", ["{secret}", "../secret", "errors/../../secret", "errors/link", "errors"])
def test_an_error_map_lies_in_its_folder(tmp_path: Path, secret: Path, name: str) -> None:
    path = ladder(tmp_path / "source")
    (path / "errors" / "link").symlink_to(secret)

    def change(line: Any) -> None:
        if "finding" in line:
            line["finding"]["map"] = name.format(secret=secret)

    lines_with(path, change)
    before = everything(tmp_path)
    with pytest.raises(InputError, match=r"outside it|is no file"):
        thin(path, tmp_path / "small")
    assert everything(tmp_path) == before, "nothing was written, nor overwritten"


@pytest.mark.parametrize("name", ["{secret}", "../secret", "events/link", "C:\\\\secret", "..\\\\secret"])
def test_events_lie_in_their_folder(tmp_path: Path, secret: Path, name: str) -> None:
    path = profile(tmp_path / "source")
    (path / "events" / "link").symlink_to(secret)
    lines_with(path, lambda line: line.update(file=name.format(secret=secret)))
    folder = PROFILE.open(path)
    for made in folder.measurements():
        with pytest.raises(InputError, match="outside it"):
            events_in(folder.path, made)
    before = everything(tmp_path)
    with pytest.raises(InputError, match="outside it"):
        thin(path, tmp_path / "small")
    assert everything(tmp_path) == before


@pytest.mark.parametrize("backend", ["x/../../../../escaped", "..", "a\\b", "x\0y", "y" * 300])
def test_a_case_is_called_what_a_file_may_be_called(tmp_path: Path, backend: str) -> None:
    path = run(tmp_path / "source")
    lines_with(path, lambda line: line["case"].update(backend=backend))
    kept = COMPARISON.open(path).measurements()
    for made in kept:  # ".." alone is a name like any other: "net-..-fp32-b1-n0"
        assert gallery.answers_path(path, made.case).resolve().is_relative_to(path.resolve())
    fit = backend in ("..", "x\0y")  # control characters are taken out of all that is read
    assert bool(kept) == fit
    received.changed(path, lambda held: held["cases"][0].update(backend=backend))
    if not fit:
        with pytest.raises(InputError, match="is no name of a backend"):
            COMPARISON.open(path)


def test_a_data_set_and_a_rung_are_called_what_a_file_may_be_called(tmp_path: Path) -> None:
    path = run(tmp_path / "source")
    received.changed(path, lambda held: held["models"][0].update(dataset="x/../../../../escaped"))
    with pytest.raises(InputError, match="is no name of a data set"):
        COMPARISON.open(path)
    path = ladder(tmp_path / "ladder")
    lines_with(path, lambda line: line["case"].update(rung="../../escaped"))
    assert LADDER.open(path).measurements() == ()


def test_images_and_answers_are_no_links_that_lead_out(tmp_path: Path) -> None:
    path = run(tmp_path / "source")
    case = COMPARISON.open(path).header.cases[0]
    (path / "predictions").mkdir()
    for name in ("answers", "images"):
        np.savez(tmp_path / f"{name}.npz", pixels=np.zeros((1, 2, 2), np.uint8), classes=np.array(["a"]))
    answers, images = gallery.answers_path(path, case), gallery.images_path(path, "digits", case)
    answers.symlink_to(tmp_path / "answers.npz")
    images.symlink_to(tmp_path / "images.npz")
    with pytest.raises(InputError, match="outside it"):
        gallery.load_answers(answers)
    with pytest.raises(InputError, match="outside it"):
        gallery.load_images(images)


@pytest.mark.parametrize("part", ["results.jsonl", "worker.log", "predictions", "layers", "charts"])
def test_a_part_that_leads_out_is_not_written_through(tmp_path: Path, secret: Path, part: str) -> None:
    path = run(tmp_path / "source")
    (path / part).unlink(missing_ok=True)
    (path / part).symlink_to(secret if "." in part else tmp_path)
    with pytest.raises(InputError, match="leads out of the folder"):
        COMPARISON.open(path)
    assert main.main(["compare", "--resume", str(path)]) == 2
    assert secret.read_bytes() == SECRET


PLANTED = {
    "out": lambda path: path.symlink_to(path.parents[2] / "secret"),
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "circle": lambda path: path.symlink_to(path.parent),
    "itself": lambda path: path.symlink_to(path),
    "pipe": os.mkfifo,
    "folder": lambda path: path.symlink_to(path.parents[2] / "elsewhere"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_copy_follows_no_link_out(tmp_path: Path, secret: Path, kind: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(SECRET)
    path = run(tmp_path / "source")
    (path / "layers").mkdir()
    PLANTED[kind](path / "layers" / "planted")
    with pytest.raises(InputError) as told:
        copy(path, tmp_path / "target")
    assert "planted" in str(told.value)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "target").exists(), "looked at before anything is copied"


def test_a_link_to_a_file_within_is_copied_as_the_file(tmp_path: Path) -> None:
    path = run(tmp_path / "source")
    (path / "layers").mkdir()
    (path / "layers" / "same").symlink_to(path / "run.json")
    target = copy(path, tmp_path / "target")
    assert not (target / "layers" / "same").is_symlink()
    assert (target / "layers" / "same").read_bytes() == (path / "run.json").read_bytes()
    assert open_folder(target).measurements() == open_folder(path).measurements()


def test_what_is_not_there_yet_may_be_named(tmp_path: Path) -> None:
    assert inside(tmp_path, "errors/new.npz") == tmp_path / "errors" / "new.npz"
    with pytest.raises(InputError):
        inside(tmp_path, "")
