"""Where a kind of run lies that the program does not have, and how it comes to have it for a while."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import bench
import bench.extras
from bench.results.kinds import kinds

HERE = Path(__file__).parent


@contextmanager
def there() -> Iterator[ModuleType]:
    """The module with the toy's words, while its folder lies beside the satellites."""
    with (
        patch.object(bench, "__path__", [*bench.__path__, str(HERE)]),
        patch.object(bench.extras, "__path__", [*bench.extras.__path__, str(HERE / "extras")]),
    ):
        kinds.cache_clear()
        yield importlib.import_module("bench.extras.toy.kind")
    kinds.cache_clear()
    for name in [name for name in sys.modules if name.startswith("bench.extras.toy")]:
        del sys.modules[name]
    vars(bench.extras).pop("toy", None)


def planned(toy: Any, *numbers: int) -> Any:
    """What squares these numbers."""
    cases = tuple(toy.ToyCase(number=number) for number in numbers)
    return toy.Toy(job=toy.ToyJob(numbers=numbers), cases=cases)
