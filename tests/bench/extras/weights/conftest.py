"""A catalogue of the test's own, and one small net in every format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.extras.weights import torchvision_nets
from models.builders import alexnet
from tests.bench.extras.weights import made

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELSCOPE_MODELS", str(tmp_path / "own"))
    return tmp_path / "own"


@pytest.fixture(scope="session")
def caffe_weights() -> made.Weights:
    weights = made.drawn(alexnet(made.CLASSES, thin=made.THIN).parameters)
    weights["fc8.weight"] /= 100  # so that no class takes all, which would hide a difference
    return weights


@pytest.fixture(scope="session")
def torch_weights() -> made.Weights:
    return made.drawn(torchvision_nets.alexnet(made.CLASSES, made.THIN).parameters)
