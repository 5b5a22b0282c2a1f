"""Nothing that a pickle names is run, and nothing that it says of sizes is believed."""

from __future__ import annotations

import io
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.extras.weights import unpickler
from bench.extras.weights.importing import import_file
from tests.bench.extras.weights import made
from tests.bench.extras.weights.refusals import refused

HEADER2 = b"\x80\x02"
GIB4 = 1 << 32


class Harm:
    """What unpickling would run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.path}",)


def test_no_code_of_a_pickle_is_run(tmp_path: Path, torch_weights: made.Weights) -> None:
    mark = tmp_path / "harmed"
    harm = Harm(mark)
    made.npy(tmp_path / "a.npy", {"conv1": harm})
    (tmp_path / "b.pth").write_bytes(pickle.dumps({"features.0.weight": harm}, protocol=2))
    made.torch_zip(tmp_path / "c.pth", torch_weights, {"harm": pickle.dumps(harm, protocol=2)[2:-1]})
    made.npy_of(tmp_path / "d.npy", pickle.dumps(harm, protocol=5))
    made.npy_of(tmp_path / "e.npy", b"cos\nsystem\n(S'touch " + os.fsencode(mark) + b"'\ntR.")
    for name in ("a.npy", "b.pth", "c.pth", "d.npy", "e.npy"):
        with refused(r"(posix|os)\.system, which is never run", 1 << 22):
            import_file(tmp_path / name)
    assert not mark.exists()
    # Ways round the table of names: to build, to make a new object, by number, from what stands in the table.
    for code in (
        b"cbuiltins\neval\n(S'1'\ntR.", b"(S'touch x'\nios\nsystem\n.", b"(cnumpy\nndarray\nS'x'\no.",
        b"cnumpy\nndarray\n)\x81.", b"\x82\x01.", b"cnumpy\nndarray\n}S'x'\nS'y'\nsb.",
        b"S'numpy'\nS'load'\n\x93.",
        b"cnumpy\ndtype.__class__\n.", b"cnumpy.core.multiarray\n_reconstruct\ncos\nsystem\n\x85R.",
        b"(cnumpy\ndtype\n(S'O'\ntRt.", b"Pname\n.", b"S'x'\nQ.",
    ):  # fmt: skip
        made.npy_of(tmp_path / "f.npy", code)
        with refused("f.npy: it"):
            import_file(tmp_path / "f.npy")


def _deep() -> bytes:
    """Pairs of which each is the one before twice: 2^60 numbers in a few hundred bytes."""
    return b"K\x01" + b"q\x00h\x00\x86" * 60


LARGE = {
    "bytes of 4 GiB": HEADER2 + b"\x8e" + struct.pack("<Q", GIB4) + b"xxxx.",
    "bytes of 2^63": HEADER2 + b"\x8e" + struct.pack("<Q", (1 << 63) - 1) + b"xxxx.",
    "text of 4 GiB": HEADER2 + b"X" + struct.pack("<I", GIB4 - 1) + b"xxxx.",
    "text of Python 2 of a negative length": HEADER2 + b"T" + struct.pack("<i", -5) + b"xxxx.",
    "a frame of 2^63": b"\x80\x05\x95" + struct.pack("<Q", (1 << 63) - 1) + b"N.",
    "a place far off in the memo": HEADER2 + b"Nr" + struct.pack("<I", GIB4 - 1) + b".",
    "a number of 2 GiB": HEADER2 + b"\x8b" + struct.pack("<i", (1 << 31) - 1) + b"x.",
    "a number of many digits": b"L" + b"9" * 100_000 + b"L\n.",
    "endless steps": HEADER2 + b"N0" * 2_000_000 + b".",
    "a pile": HEADER2 + b"N" * 4_000_000 + b".",
    "a deep shape": b"cnumpy.core.multiarray\n_reconstruct\n)R(K\x01" + _deep() + b"NNNtb.",
    "a deep key": b"}" + _deep() + b"Ns.",
    "a deep type": b"cnumpy\ndtype\n" + _deep() + b"\x85R.",
    "a deep order": b"cnumpy\ndtype\nS'f4'\n\x85R(K\x03" + _deep() + b"tb.",
    "a deep dict of layers": b"}S'conv1'\n" + _deep() + b"s.",
    "the same bytes again and again": (
        b"\x80\x02c_codecs\nencode\nq\x01X" + struct.pack("<I", 1 << 20) + b"x" * (1 << 20)
        + b"X\x06\0\0\0latin1\x86q\x0200" + b"h\x01h\x02R" * 5000 + b"."
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LARGE)
def test_what_a_pickle_says_of_sizes_is_not_believed(tmp_path: Path, what: str) -> None:
    file = made.npy_of(tmp_path / "a.npy", LARGE[what])
    with refused("a.npy: it", file.stat().st_size):
        import_file(file)


def array(shape: bytes, data: bytes) -> bytes:
    return made.array2(np.zeros(2, np.float32)).replace(
        b"(J\x02\0\0\0t", shape).replace(made.text2(bytes(8)), data)  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "saying"),
    [
        (b"J\xff\xff\xff\xff\x85", "size of -1"),
        (b"J\xff\xff\xff\xffJ\xfe\xff\xff\xff\x86", "size of -1"),
        (b"J\x03\0\0\0\x85", "not 12 bytes"),
        (b"\x8a\x08" + struct.pack("<q", 1 << 62) + b"\x85", "size of 4611686018427387904"[:15]),
        (b"\x88\x85", "no whole number"),
        (b"(" + b"K\x00" * 200 + b"t", "shape that is none"),
    ],
)
def test_shapes_that_are_none(tmp_path: Path, shape: bytes, saying: str) -> None:
    pickled = b"\x80\x02" + array(shape, made.text2(bytes(8))) + b"."
    assert pickled != b"\x80\x02" + made.array2(np.zeros(2, np.float32)) + b"."
    with refused(saying):
        import_file(made.npy_of(tmp_path / "a.npy", pickled))


@pytest.mark.parametrize("protocol", range(2, 6))
def test_what_is_data_comes_out_as_it_went_in(protocol: int) -> None:
    data = {
        "w": np.arange(12, dtype=">f4").reshape(3, 4).T,
        1: [np.float32(0.5), "ä", b"\xff", None, True, -5, 2**40, 1e-3],
        "t": (np.zeros((2, 0)), np.arange(5, dtype=np.int64), {"x": ()}),
    }
    found: Any = unpickler.load(io.BytesIO(pickle.dumps(data, protocol=protocol)))
    np.testing.assert_array_equal(found["w"], data["w"])
    assert found[1] == data[1]
    assert [part.shape for part in found["t"][:2]] == [(2, 0), (5,)]
    assert found["t"][2] == {"x": ()}
