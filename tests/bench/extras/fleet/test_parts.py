"""A data set in parts: every image once, and what is counted together is what one would have counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import main
from bench.extras.fleet import parts
from bench.results.records import Accuracy, Case, Job, Measurement
from kernels.errors import DataError, InputError
from models import datasets

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("images", [10, 11, None])
def test_every_image_is_in_one_part(images: int | None) -> None:
    whole = datasets.load("digits", images)
    job = Job(models=("m",), backends=(), dataset="digits")
    made = [
        datasets.load(j.dataset or "", j.images[0])
        for j in parts.jobs(job, len(whole), 4 if images is None else 1)
    ]
    assert sum(map(len, made)) == len(whole)
    assert whole.labels is not None
    order = np.argsort(np.concatenate([np.arange(len(whole))[n :: len(made)] for n in range(len(made))]))
    assert np.array_equal(np.concatenate([part.array for part in made])[order], whole.array)
    assert np.array_equal(np.concatenate([part.labels for part in made])[order], whole.labels)  # type: ignore[arg-type]


def test_a_folder_is_taken_in_parts_too_and_a_part_without_a_class_is_refused(tmp_path: Path) -> None:
    from PIL import Image

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(4):
            Image.new("L", (4, 4), number).save(tmp_path / name / f"{number}.png")
    made = [datasets.load(f"folder:{tmp_path}@{number}of2") for number in (1, 2)]
    assert [len(part) for part in made] == [4, 4]
    seen = [int(image[0, 0]) for part in made for image in part.read(0, 9)[0]]
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3, 3]
    with pytest.raises(DataError, match="fewer parts"):
        datasets.load(f"folder:{tmp_path}@1of8")
    with pytest.raises(InputError, match="from 1 to 2"):
        datasets.load("digits@3of2")


def worth(images: int, top1: float | None, backend: str = "engine-cpu") -> Measurement:
    case = Case(model="m", backend=backend, precision="fp32", batch=1, images=images)
    found = Accuracy(images=images, labelled=top1 is not None, top1=top1, top5=1.0, agreement=0.5)
    return Measurement(case=case, disposition="ok", accuracy=found)


def test_parts_are_counted_and_not_averaged() -> None:
    (one,) = parts.together([worth(10, 0.9), worth(90, 0.5)])
    assert (one.images, one.parts, one.top1, one.top5, one.agreement) == (100, 2, 0.54, 1.0, 0.5)
    (one,) = parts.together([worth(10, 0.9), worth(10, None)])
    assert (one.top1, one.top1_interval, one.top5) == (None, None, 1.0)
    lost = Measurement(case=worth(1, 1.0).case, disposition="failed", reason="it broke")
    with pytest.raises(DataError, match="it broke"):
        parts.together([lost])


def test_more_parts_than_images_are_refused() -> None:
    with pytest.raises(InputError, match="in 3 parts"):
        parts.jobs(Job(models=("m",), backends=()), 2, 3)


@pytest.mark.sampled(4, "long")
def test_a_model_in_two_parts_is_worth_what_it_is_worth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "accuracy",
        "lenet5-digits",
        "--backend",
        "ort-cpu",
        "--parts",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main.main([*command, "--images", "100"]) == 0
    (one,) = json.loads((tmp_path / "out" / "accuracy.json").read_text())["found"]
    assert (one["images"], one["parts"]) == (100, 2)
    assert "on 100 images" in capsys.readouterr().out
    assert main.main([*command, "--images", "90"]) == 2
