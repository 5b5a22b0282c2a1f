"""Names that files are called after."""

from __future__ import annotations

from functools import lru_cache

MOST_CHARACTERS = 100  # of a name that files are called after
_SEPARATORS = frozenset("/\\:\0")


@lru_cache(maxsize=4096)
def check_name(what: str, name: str) -> None:
    """Raises ValueError for a name that a file in the folder of its record cannot be called after: it would
    lie elsewhere, or nowhere. A record may come from anybody."""
    if len(name) > MOST_CHARACTERS or not _SEPARATORS.isdisjoint(name):
        raise ValueError(f"{name[:MOST_CHARACTERS]!r} is no name of a {what}")


@lru_cache(maxsize=4096)  # a million lines name few models
def stem(model: str) -> str:
    """What a model given by path is called: its file's name without .onnx; any other its own name."""
    return model.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".onnx")
