"""Images and answers that a run keeps for looking at: small, once, and readable without an engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.measure.images import predictions
from bench.measure.images.predictions import Predictions
from bench.results import gallery
from bench.results.records import Case
from kernels.errors import DataError

CASE = Case(model="m/net.onnx", backend="engine-cpu", precision="fp32", batch=4, images=20)


def test_images_come_back_as_they_were_kept(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (30, 28, 28), dtype=np.uint8)
    path = gallery.images_path(tmp_path, "digits", CASE)
    gallery.keep_images(path, images, ("zero", "one"), CASE.images)
    found = gallery.load_images(path)
    assert found.classes == ("zero", "one")
    np.testing.assert_array_equal(found.pixels, images[:20])


def test_images_are_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "images.npz"
    gallery.keep_images(path, np.zeros((2, 4, 4), np.uint8), (), 2)
    gallery.keep_images(path, np.ones((2, 4, 4), np.uint8), (), 2)
    assert gallery.load_images(path).pixels.max() == 0


def test_large_images_are_thinned_to_means_and_keep_their_sides() -> None:
    image = np.zeros((2, 128, 256, 3), np.uint8)
    image[:, :, 128:] = 200
    small = gallery.thinned(image)
    assert small.shape == (2, 32, 64, 3)
    assert set(np.unique(small)) == {0, 200}
    chess = np.indices((1, 256, 256)).sum(axis=0).astype(np.uint8) % 2 * 200
    assert (gallery.thinned(chess) == 100).all()


def test_only_the_first_images_of_a_huge_set_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gallery, "MOST", 5)
    path = gallery.images_path(tmp_path, "mnist", CASE)
    gallery.keep_images(path, np.zeros((20, 2, 2), np.uint8), (), CASE.images)
    assert len(gallery.load_images(path)) == 5
    assert path == gallery.images_path(tmp_path, "mnist", CASE)


def test_a_named_set_is_shared_by_models_of_the_catalogue_and_others_are_not(tmp_path: Path) -> None:
    other = Case(model="other", backend="ort-cpu", precision="fp32", batch=1, images=20)
    path = gallery.images_path
    third = Case(model="third", backend="ort-cpu", precision="fp32", batch=1, images=20)
    assert path(Path(), "digits", third) == path(Path(), "digits", other)
    assert path(Path(), "digits", CASE) != path(Path(), "digits", other), (
        "its classes have an order of its own"
    )
    shared = path(tmp_path, "digits", other)
    shared.parent.mkdir()
    shared.touch()
    assert path(tmp_path, "digits", CASE) == shared, "as a run left it before"
    path(tmp_path, "digits", CASE, written=False).touch()
    assert path(tmp_path, "digits", CASE) != shared
    for dataset in ("random", "folder:/some/where"):
        assert path(Path(), dataset, CASE) != path(Path(), dataset, other)
        assert path(Path(), dataset, CASE).name.count("/") == 0


def test_answers_are_read_without_the_engine_as_they_were_saved(tmp_path: Path) -> None:
    told = Predictions(
        np.array([1, -1]),
        np.array([1, 0]),
        np.array([0.9, 0.5], np.float32),
        np.array([True, False]),
        np.array([0.8, 0.0], np.float32),
        5,
        3,
    )
    path = gallery.answers_path(tmp_path, CASE)
    predictions.save(path, told)
    found = gallery.load_answers(path)
    for name in ("label", "predicted", "confidence", "top5"):
        np.testing.assert_array_equal(getattr(found, name), getattr(told, name))


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 cut short"])
def test_what_cannot_be_read_is_told_in_words(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.npz"
    if content is not None:
        path.write_bytes(content)
    for load in (gallery.load_images, gallery.load_answers):
        with pytest.raises(DataError, match=r"broken\.npz cannot be read .* run the comparison again"):
            load(path)  # type: ignore[operator]
