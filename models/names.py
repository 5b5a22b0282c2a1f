"""Names and titles of models and data sets, for lists and menus: reads only small tables.

`catalogue.toml` and `datasets.toml` are the only places where the program lists its models and data sets;
models that the user imported follow (models.imported).
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from kernels.cache import cache_dir
from models import imported

HERE = Path(__file__).parent
DEFAULT_MODEL = "lenet5-digits"


@cache
def _table(file: str) -> dict[str, dict[str, Any]]:
    with (HERE / file).open("rb") as stream:
        return tomllib.load(stream)


def models() -> dict[str, dict[str, Any]]:
    """The tables of all models by name, those of catalogue.toml first and in its order. Do not change
    them."""
    own = shipped()  # whose names are never another's
    return own | {name: table for name, table in imported.tables().items() if name not in own}


def shipped() -> dict[str, dict[str, Any]]:
    """The tables of catalogue.toml by name, in its order. Do not change them."""
    return _table("catalogue.toml")


def datasets() -> dict[str, dict[str, Any]]:
    """The tables of datasets.toml by name, in its order. Do not change them."""
    return _table("datasets.toml")


def model_titles() -> dict[str, str]:
    """Title of every catalogue model by name."""
    return {name: table["title"] for name, table in models().items()}


def dataset_titles() -> dict[str, str]:
    """Title of every data set by name, also of random images and folders."""
    titles = {"random": "Random images (agreement only)", "folder:DIR": "A folder of your own images"}
    return {name: table["title"] for name, table in datasets().items()} | titles


def nbytes(model: str) -> int:
    """The size of a model's file, given by name or path; 0 where there is none yet."""
    if model in models():
        files = [imported.folder() / f"{model}.onnx", *cache_dir().glob(f"models/*/{model}.onnx")]
    else:
        files = [Path(model)]
    return max((path.stat().st_size for path in files if path.is_file()), default=0)
