"""Names that are used in the names of files."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    """What a model given by path is called: its file's name without .onnx; any other its own name. Of a path
    with a double slash in it (`with_distinct_stems`), all behind that."""
    path = model.replace("\\", "/")
    _, apart, name = path.rpartition("//")
    return (name.replace("/", "-") if apart else path.rsplit("/", 1)[-1]).removesuffix(".onnx")


def with_distinct_stems(models: Sequence[str]) -> tuple[str, ...]:
    """The same models, those paths that would be called as another model is with a double slash, which a
    system takes for one, before as many of their last parts as tells them apart: resnet//a/model.onnx and
    resnet//b/model.onnx are a-model and b-model. What is no path keeps its name."""
    plain = tuple(dict.fromkeys(map(plain_path, models)))
    found = {model: model for model in plain}
    by_stem: dict[str, list[str]] = {}
    for model in plain:
        by_stem.setdefault(stem(model), []).append(model)
    used = {name for name, same in by_stem.items() if len(same) == 1 or name in same}
    for name, same in by_stem.items():
        paths = [model for model in same if model != name]
        for depth in range(2, _DEEPEST + 1) if len(same) > 1 else ():
            found |= {model: _split(model, depth) for model in paths}
            called = {stem(found[model]) for model in paths}
            if len(called) == len(paths) and used.isdisjoint(called):
                break
        used.update(stem(found[model]) for model in paths)
    return tuple(found[model] for model in plain)


def plain_path(model: str) -> str:
    """The path without what `with_distinct_stems` writes into it."""
    return model if "//" not in model else re.sub("/{2,}", "/", model).replace("/./", "/").removeprefix("./")


_DEEPEST = 64


def _split(model: str, depth: int) -> str:
    """A path with a double slash before its last `depth` parts; all of it where it has no more."""
    parts = model.replace("\\", "/").split("/")
    before, last = parts[:-depth], parts[-depth:]
    if last and last[0] == "":  # an absolute path, to its root
        before, last = ["", "."], last[1:]
    if before == [""]:
        before = ["", "."]  # two slashes in front would be no plain path
    return f"{'/'.join(before) if before else '.'}//{'/'.join(last)}"
