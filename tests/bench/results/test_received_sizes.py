"""Received files are read within limits: nothing unpacks, nests or waits for ever, and all of it is told in a
sentence."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

import main
from bench.measure.images import predictions
from bench.results import gallery, npz, reading
from bench.results.event_files import read_events
from bench.results.records import Measurement
from bench.results.store import RESULTS_FILE
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.profile import KIND as PROFILE
from bench.views import trace
from kernels.errors import InputError
from tests.bench.results import received

OPENS: dict[str, Callable[[Path], object]] = {
    COMPARISON.file: COMPARISON.open,
    LADDER.file: LADDER.open,
    PROFILE.file: PROFILE.open,
}
DEEP = b'{"a":' * 200_000 + b"1" + b"}" * 200_000
NUMBERS = {"label": "i8", "predicted": "i8", "confidence": "f4", "top5": "?"}


def packed(path: Path, **members: bytes) -> Path:
    """An npz file of members as they are given."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def npy(shape: tuple[int, ...], dtype: str, data: bytes = b"") -> bytes:
    """An array whose header says what it likes."""
    stream = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)  # type: ignore[arg-type]
    return stream.getvalue() + data


def refused(read: Callable[[Path], object], path: Path, words: str) -> None:
    with pytest.raises(InputError, match=words) as told:
        read(path)
    assert "\n" not in str(told.value)


# --------------------------------------------------------------------------------------------------- npz


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    most = 8 * reading.MIB
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in NUMBERS:
            archive.writestr(f"{name}.npy", npy((4 * reading.MIB,), "u1", bytes(4 * reading.MIB)))
    assert path.stat().st_size < 100_000
    with pytest.raises(reading.Unreadable, match="it unpacks to"):
        npz.arrays(path, most=most)
    assert npz.arrays(path, ("label",), most)["label"].nbytes == 4 * reading.MIB


def test_a_zip_that_lies_about_its_size_is_read_no_further(tmp_path: Path) -> None:
    honest = packed(tmp_path / "a.npz", label=npy((1 << 20,), "u1", bytes(1 << 20)))
    data = bytearray(honest.read_bytes())
    size = len(npy((1 << 20,), "u1")) + (1 << 20)
    told = size.to_bytes(4, "little")
    assert data.count(told) == 2  # in front of the member and in the directory
    lying = tmp_path / "b.npz"
    lying.write_bytes(data.replace(told, (500).to_bytes(4, "little")))
    refused(gallery.load_answers, lying, "run the comparison again")
    with pytest.raises(reading.Unreadable, match=r"says that it has|CRC"):
        npz.arrays(lying)


@pytest.mark.parametrize(
    "member",
    [
        npy((1 << 60,), "f8"),
        npy((-1, -8), "f8", bytes(64)),
        npy((4,), "|O", b"cos\nsystem\n(S'true'\ntR."),
        npy((8,), "f8", bytes(8)),
        npy((1,), "f8", bytes(800)),
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
        b"\x93NUMPY\x09\x00",
        b"",
        b"nonsense",
    ],
    ids=["huge", "negative", "objects", "short", "long", "nested header", "version", "empty", "nonsense"],
)
def test_an_array_is_what_it_says(tmp_path: Path, member: bytes) -> None:
    path = packed(tmp_path / "a.npz", **dict.fromkeys((*NUMBERS, "ns", "pixels", "classes"), member))
    for load in (gallery.load_answers, gallery.load_images, predictions.load):
        refused(load, path, "run the comparison again")


def test_too_many_arrays_and_arrays_of_other_kinds_are_refused(tmp_path: Path) -> None:
    many = packed(tmp_path / "many.npz", **{f"a{i}": npy((0,), "f8") for i in range(npz.MOST_ARRAYS + 1)})
    with pytest.raises(reading.Unreadable, match="65 arrays"):
        npz.arrays(many)
    texts = packed(tmp_path / "texts.npz", **dict.fromkeys(NUMBERS, npy((1,), "<U2", bytes(8))))
    refused(gallery.load_answers, texts, "label is <U2")
    flat = packed(tmp_path / "flat.npz", pixels=npy((2, 2, 2, 9), "|u1", bytes(72)), classes=npy((0,), "<U1"))
    refused(gallery.load_images, flat, "of shape")


def test_what_numpy_writes_is_read_back_alike(tmp_path: Path) -> None:
    written = {
        "plain": np.arange(6.0).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "names": np.array(["a", "ÄÖ"]),
        "none": np.array([], np.str_),
        "one": np.float32(3),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **written)  # type: ignore[arg-type]
        found = npz.arrays(tmp_path / "a.npz")
        assert list(found) == list(written)
        for name, array in written.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype


# ------------------------------------------------------------------------------------------------ gz, JSON


def test_events_that_unpack_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "EVENTS_NBYTES", reading.MIB)
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * (8 * reading.MIB)))
    refused(read_events, path, "unpacks to more than")
    path.write_bytes(gzip.compress(DEEP + b"\n"))
    refused(read_events, path, "unpacks to more than|nested deeper")


@pytest.mark.parametrize("file", OPENS)
@pytest.mark.parametrize(
    "data",
    [DEEP, b"[" * 1_000_000, b"", b"\xff\xfe", b'{"schema": 1' + b"0" * 5000 + b"}", b"[]", b"null"],
    ids=["deep", "brackets", "empty", "no text", "large number", "list", "null"],
)
def test_a_record_that_is_none_is_one_sentence(tmp_path: Path, file: str, data: bytes) -> None:
    (tmp_path / file).write_bytes(data)
    refused(OPENS[file], tmp_path, "is broken|newer")
    assert main.main(["runs", "show", str(tmp_path)]) == 2


@pytest.mark.parametrize("file", OPENS)
def test_a_record_that_is_no_file_is_not_waited_for(tmp_path: Path, file: str) -> None:
    os.mkfifo(tmp_path / file)
    refused(OPENS[file], tmp_path, "a pipe")
    (tmp_path / file).unlink()
    (tmp_path / file).symlink_to("/dev/zero")
    refused(OPENS[file], tmp_path, "leads out")


@pytest.mark.parametrize("name", [RESULTS_FILE, "worker.log"])
def test_a_pipe_in_a_run_is_not_waited_for(tmp_path: Path, name: str) -> None:
    path = received.run(tmp_path / "run")
    os.mkfifo(path / name)
    refused(COMPARISON.open, path, "a pipe")


def test_a_record_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = received.run(tmp_path / "run")
    os.truncate(path / COMPARISON.file, reading.RECORD_NBYTES + 1)
    refused(COMPARISON.open, path, "at most")
    path = received.run(tmp_path / "other", measured=1)
    os.truncate(path / RESULTS_FILE, reading.RESULTS_NBYTES + 1)  # a hole, which takes no room on the disk
    with pytest.raises(InputError, match="at most"):
        COMPARISON.open(path).measurements()


def test_a_deep_or_endless_line_costs_that_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LINE_NBYTES", 4 * reading.MIB)
    path = received.run(tmp_path / "run", measured=1)
    with (path / RESULTS_FILE).open("ab") as file:
        file.write(DEEP + b"\n" + b"x" * (9 * reading.MIB) + b"\n")
    with COMPARISON.open(path) as folder:
        folder.append(Measurement(case=received.CASES[1], disposition="ok"))
    assert [m.case for m in COMPARISON.open(path).measurements()] == list(received.CASES)


def test_a_trace_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    for data in (b"[" * 100_000, b"{}", json.dumps({"traceEvents": [{"pid": 1, "ph": "X"}]}).encode()):
        (tmp_path / "trace.json").write_bytes(data)
        refused(trace.read, tmp_path / "trace.json", "no trace of ours")


def test_more_lines_than_any_run_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LINES", 3)
    path = received.run(tmp_path / "run", measured=2)
    assert len(COMPARISON.open(path).measurements()) == 2
    with (path / RESULTS_FILE).open("ab") as file:
        file.write(b"\n\n")
    with pytest.raises(InputError, match="more than 3 lines"):
        COMPARISON.open(path).measurements()


def test_records_say_nothing_that_there_cannot_be(tmp_path: Path) -> None:
    path = received.run(tmp_path / "run")
    for batch in (0, -1, 10**30):
        received.changed(path, lambda held, batch=batch: held["cases"][0].update(batch=batch))
        refused(COMPARISON.open, path, "is broken")
    assert msgspec.json.decode((path / COMPARISON.file).read_bytes())["cases"][0]["batch"] == 10**30
