from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def data_dir() -> Path:
    """The offline copy of public data; tests that need it are skipped where it is not."""
    folder = Path(os.environ.get("KERNELSCOPE_DATA", ""))
    if not os.environ.get("KERNELSCOPE_DATA") or not (folder / "onnx" / "mnist-8.onnx").is_file():
        pytest.skip("KERNELSCOPE_DATA does not name a folder with onnx/mnist-8.onnx")
    return folder
