"""Images become inputs: range, size, channels, and the same answer whole or in slices."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.errors import InputError
from models.datasets import preprocess
from models.preprocessing import resize

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


@pytest.mark.parametrize("shape", [(784,), ("N", 10), (5, 4, 4), ("N", "C", 4, 4)])
def test_model_that_takes_no_images_is_refused(shape: tuple[int | str, ...]) -> None:
    with pytest.raises(InputError, match="not one of images"):
        preprocess(GREY, "unit", shape)


def test_other_arrays_are_refused() -> None:
    with pytest.raises(InputError, match="float32"):
        preprocess(GREY.astype(np.float32), "unit", (1, 4, 4))
