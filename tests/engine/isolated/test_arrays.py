"""Objects on their way to an isolated process: small ones are pickled, large arrays lie in shared memory."""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from engine.isolated import arrays
from engine.isolated.memory import attach


class Pickler(pickle.Pickler):
    """As that of Python 3.13.0, on which nothing can be set that the class has."""

    def persistent_id(self, item: Any) -> Any:
        return None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "persistent_id":
            raise AttributeError("'_pickle.Pickler' object attribute 'persistent_id' is read-only")
        super().__setattr__(name, value)


class Unpickler(pickle.Unpickler):
    def __setattr__(self, name: str, value: Any) -> None:
        if name == "persistent_load":
            raise AttributeError("'_pickle.Unpickler' object attribute 'persistent_load' is read-only")
        super().__setattr__(name, value)


def in_python_3_13_0(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module loaded anew, beside the one that the program uses."""
    spec = importlib.util.spec_from_file_location("arrays_of_3_13_0", arrays.__file__)
    assert spec is not None
    assert spec.loader is not None
    monkeypatch.setattr(pickle, "Pickler", Pickler)
    monkeypatch.setattr(pickle, "Unpickler", Unpickler)
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, made)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("python", ["this", "3.13.0"])
def test_what_is_sent_arrives_and_a_large_array_is_sent_by_its_place(
    python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of: Any = arrays if python == "this" else in_python_3_13_0(monkeypatch)
    large = np.arange(of.LARGE_NBYTES, dtype=np.float32)
    sent = {"large": large, "again": large, "small": np.ones(3), "names": ("a", "b")}
    data, numbers = of.dumped(sent)
    assert len(data) < large.nbytes
    (number,) = numbers
    received = of.loaded(data, {number: _bytes(of, number)})
    assert received["large"] is received["again"]
    np.testing.assert_array_equal(received["large"], large)
    np.testing.assert_array_equal(received["small"], sent["small"])
    assert received["names"] == ("a", "b")


def _bytes(of: Any, number: int) -> np.ndarray:
    """A block as a child maps it."""
    block = of.SHELF.blocks[number]
    return attach(os.dup(block.fd), block.path, block.nbytes, own=True)
