"""Images become inputs: range, size, channels, and the same answer whole or in slices."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kernels.errors import InputError
from models.datasets import preprocess
from models.preprocessing import Preprocessing, resize

GREY = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4) * 8
RGB = np.random.RandomState(0).randint(0, 256, (3, 6, 5, 3)).astype(np.uint8)


def test_ranges() -> None:
    np.testing.assert_array_equal(preprocess(GREY, "raw", (1, 4, 4))[:, 0], GREY)
    np.testing.assert_allclose(preprocess(GREY, "unit", (1, 4, 4))[:, 0], GREY / 255, rtol=1e-6)
    wanted = (GREY / 255 - 0.45) / 0.225
    np.testing.assert_allclose(preprocess(GREY, "0.45,0.225", (1, 4, 4))[:, 0], wanted, atol=1e-6)


def test_result_is_dense_float32_for_any_batch_axis() -> None:
    for shape in ((3, 6, 5), ("N", 3, 6, 5), (1, 3, 6, 5), (None, 3, None, "W")):
        out = preprocess(RGB, "unit", shape)
        assert out.shape == (3, 3, 6, 5)
        assert out.dtype == np.float32
        assert out.flags.c_contiguous


def test_channels() -> None:
    planes = preprocess(RGB, "raw", (3, 6, 5))
    np.testing.assert_array_equal(planes.transpose(0, 2, 3, 1), RGB)
    luma = preprocess(RGB, "raw", (1, 6, 5))
    np.testing.assert_allclose(luma[:, 0], RGB @ np.array([0.299, 0.587, 0.114]), atol=1.0)
    grey = preprocess(GREY, "raw", (3, 4, 4))
    assert (grey[:, 0] == grey[:, 1]).all()
    assert (grey[:, 0] == grey[:, 2]).all()


def test_resizing() -> None:
    assert preprocess(GREY, "unit", (3, 227, 227)).shape == (2, 3, 227, 227)
    flat = np.full((1, 28, 28), 77, np.uint8)
    assert (resize(flat, 227, 227) == 77).all()
    ramp = resize(np.array([[[0, 100]]], np.uint8), 1, 4)
    assert ramp.tolist() == [[[0, 25, 75, 100]]]  # bilinear, pixel centres aligned
    half = resize(np.array([[[0, 100, 50, 150]]], np.uint8), 1, 2)
    assert half[0, 0, 0] < half[0, 0, 1]


def test_slices_give_the_same_as_the_whole() -> None:
    whole = preprocess(RGB, "0.5,0.5", (3, 13, 11))
    parts = [preprocess(RGB[i : i + 1], "0.5,0.5", (3, 13, 11)) for i in range(3)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert preprocess(RGB[:0], "unit", (3, 13, 11)).shape == (0, 3, 13, 11)


@pytest.mark.parametrize("spec", ["", "unti", "1", "1,2,3", "a,b", "0.5,0", "0.5,-1", "nan,1", "0,inf"])
def test_unknown_preprocessing_says_what_works(spec: str) -> None:
    with pytest.raises(InputError, match="use raw"):
        preprocess(GREY, spec, (1, 4, 4))


@pytest.mark.parametrize("shape", [(784,), ("N", 10), (5, 4, 4), ("N", "C", 4, 4), ("N", 8, 12, 12)])
def test_model_that_takes_no_images_is_refused(shape: tuple[int | str, ...]) -> None:
    with pytest.raises(InputError, match="not one of images"):
        preprocess(GREY, "unit", shape)


def test_other_arrays_are_refused() -> None:
    with pytest.raises(InputError, match="float32"):
        preprocess(GREY.astype(np.float32), "unit", (1, 4, 4))


def test_layouts_hold_the_same_pixels() -> None:
    planes = preprocess(RGB, "unit", ("N", 3, 6, 6))
    np.testing.assert_array_equal(preprocess(RGB, "unit", ("N", 6, 6, 3)), planes.transpose(0, 2, 3, 1))
    flat = preprocess(RGB, "unit", ("N", 108))
    np.testing.assert_array_equal(flat, planes.transpose(0, 2, 3, 1).reshape(3, -1))
    grey = preprocess(GREY, "unit", ("N", 1, 4, 4))
    np.testing.assert_array_equal(preprocess(GREY, "unit", (None, 4, 4)), grey[:, 0])
    np.testing.assert_array_equal(preprocess(GREY, "unit", ("N", 16)), grey.reshape(2, 16))


def test_bytes_stay_bytes() -> None:
    found = preprocess(RGB, "raw", ("N", 6, 5, 3), "uint8")
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, RGB)
    with pytest.raises(InputError, match="use --preprocess raw"):
        preprocess(RGB, "unit", ("N", 6, 5, 3), "uint8")


def test_imagenet_is_what_torchvision_does() -> None:
    image = np.random.RandomState(1).randint(0, 256, (300, 400, 3)).astype(np.uint8)
    found = preprocess([image], "imagenet", ("N", 3, 224, 224))[0]
    small = np.asarray(Image.fromarray(image).resize((341, 256), Image.Resampling.BILINEAR))
    middle = small[16:240, 58:282] / 255
    wanted = (middle - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(found, wanted.transpose(2, 0, 1), atol=1e-5)


def test_caffe_is_the_middle_of_a_square_blue_first_with_its_means_taken_off() -> None:
    image = np.random.RandomState(2).randint(0, 256, (300, 400, 3)).astype(np.uint8)
    found = preprocess([image], "caffe", ("N", 3, 227, 227))[0]
    square = np.asarray(Image.fromarray(image).resize((256, 256), Image.Resampling.BILINEAR))
    wanted = square[14:241, 14:241, ::-1] - np.array([104.00699, 116.66877, 122.67892])
    np.testing.assert_allclose(found, wanted.transpose(2, 0, 1), atol=1e-3)


def test_zeros_around_instead_of_resizing() -> None:
    text = "fit = 'pad'\ndivide = 1"
    padded = preprocess(GREY, text, ("N", 1, 6, 6))
    np.testing.assert_array_equal(padded[:, 0, 1:5, 1:5], GREY)
    assert padded.sum() == GREY.sum()
    large = preprocess(np.full((1, 40, 20), 7, np.uint8), text, ("N", 1, 10, 10))[0, 0]
    np.testing.assert_array_equal(np.flatnonzero(large.any(axis=0)), np.arange(2, 7))


def test_a_preparation_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("base = 'raw'\nmean = [1, 2, 3]\nstd = 2\norder = 'BGR'\nresize = [6, 6]\nfit = 'crop'")
    image = np.zeros((1, 6, 6, 3), np.uint8) + np.array([10, 20, 30], np.uint8)
    found = preprocess(image, str(file), ("N", 3, 4, 4))[0, :, 0, 0]
    np.testing.assert_allclose(found, [(30 - 1) / 2, (20 - 2) / 2, (10 - 3) / 2])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("maen = 1", "did you mean 'mean'"),
        ("std = 0", "positive"),
        ("mean = [1, 2]", "or three in a list"),
        ("mean = true", "or three in a list"),
        ("fit = 'squeeze'", "stretch and crop and pad"),
        ("resize = 1000000", "resize is 1000000"),
        ("base = 'x.toml'", "base is 'x.toml'"),
        ("mean = ", "is no TOML"),
        ("/no/such.toml", "cannot be read"),
        ("mean = [1, 2, 3]\n" + "#" * 20_000, "characters"),
    ],
)
def test_a_preparation_that_means_nothing_says_which_key(text: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as told:
        preprocess(RGB, text, (3, 6, 5))
    assert "\n" not in str(told.value)


def test_three_means_need_three_channels() -> None:
    with pytest.raises(InputError, match="one a channel"):
        preprocess(GREY, "imagenet", (1, 4, 4))


def test_what_a_file_says_of_itself_reads_no_other() -> None:
    with pytest.raises(InputError, match="is not known"):
        Preprocessing("/etc/passwd.toml", (3, 6, 5), files=False)
