"""A flipped bit is noticed and costs one line; newer records are called newer; no bad folder hides others."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import pytest

import main
from bench.results.records import Measurement
from bench.results.results_file import ResultsFile, line_of, sound
from bench.results.store import RESULTS_FILE
from bench.results.summaries import summaries
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.profile import KIND as PROFILE
from tests.bench.results import received
from tests.bench.results.test_folders import ladder, profile, run


def test_no_flipped_bit_passes_for_a_measurement(tmp_path: Path) -> None:
    path = run(tmp_path / "run")
    results = ResultsFile(path / RESULTS_FILE, Measurement)
    whole = results.read()
    data = (path / RESULTS_FILE).read_bytes()
    drawn = random.Random(0)
    for _ in range(400):
        at = drawn.randrange(len(data))
        flipped = bytearray(data)
        flipped[at] ^= 1 << drawn.randrange(8)
        (path / RESULTS_FILE).write_bytes(flipped)
        found = results.read(tell=False)
        wrong = {key for key, made in found.items() if made != whole.get(key)}
        assert not wrong, f"byte {at}"
        assert len(found) >= len(whole) - 2, "a newline may cost the lines on both sides"


def test_a_damaged_line_is_measured_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = received.run(tmp_path / "run", measured=2)
    data = (path / RESULTS_FILE).read_bytes()
    (path / RESULTS_FILE).write_bytes(data.replace(b"[1.0,2.0]", b"[1.0,3.0]", 1))
    assert COMPARISON.open(path).missing() == received.CASES[:1]
    assert main.main(["runs", "show", str(path), "--format", "csv"]) == 0
    with COMPARISON.open(path) as folder:
        folder.append(Measurement(case=received.CASES[0], disposition="ok", samples_ns=(4.0,)))
    assert COMPARISON.open(path).missing() == ()
    assert {m.samples_ns for m in COMPARISON.open(path).measurements()} == {(1.0, 2.0), (4.0,)}


def test_lines_without_a_checksum_are_read_and_counted(tmp_path: Path) -> None:
    path = received.run(tmp_path / "run", measured=2)
    first, second = (path / RESULTS_FILE).read_bytes().splitlines(keepends=True)
    old = msgspec.json.encode(COMPARISON.open(path).measurements()[0]) + b"\n"
    assert b'"sum"' in first
    (path / RESULTS_FILE).write_bytes(old + second)
    results = ResultsFile(path / RESULTS_FILE, Measurement)
    assert len(results.read()) == 2
    assert (results.unchecked, results.damaged) == (1, ())


def test_a_line_is_still_json_and_its_sum_is_of_all_of_it() -> None:
    line = line_of(Measurement(case=received.CASES[0], disposition="ok")).rstrip(b"\n")
    assert msgspec.json.decode(line)["case"]["model"] == "lenet5-digits"
    assert sound(line) is True
    for at in range(len(line)):
        assert sound(line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]) is not True


@pytest.mark.parametrize("file", [COMPARISON.file, LADDER.file, PROFILE.file])
def test_a_newer_record_is_listed_as_such(
    tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    received.run(tmp_path / "good", measured=1)
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / file).write_text('{"schema": 3, "job": ["told", "otherwise"], "created_at": "2031-01-02T03:04"}')
    found = {item.path.name: item.what for item in summaries(tmp_path)}
    assert found == {
        "good": "comparison: lenet5-digits",
        "newer": "recorded by a newer Kernelscope (schema 3)",
    }
    monkeypatch.chdir(tmp_path)
    assert main.main(["runs", "list", "."]) == 0
    assert "recorded by a newer Kernelscope (schema 3)" in capsys.readouterr().out
    assert main.main(["runs", "show", str(newer)]) == 2
    assert "update Kernelscope" in capsys.readouterr().err


def test_no_bad_folder_hides_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for make in (run, ladder, profile):
        make(tmp_path / f"good-{make.__name__}")
    planted = {
        "deep": b"[" * 1_000_000,
        "empty": b"",
        "text": b"\xff",
        "types": b'{"job": 1, "cases": []}',
        "schema": b'{"schema": "x"}',
        "names": b'{"job":{"models":[],"backends":[]},"cases":[]}',
    }
    for name, data in planted.items():
        for file in (COMPARISON.file, LADDER.file, PROFILE.file):
            folder = tmp_path / f"{name}-{file}"
            folder.mkdir()
            (folder / file).write_bytes(data)
    (tmp_path / "link").symlink_to(tmp_path / "link")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / COMPARISON.file).symlink_to("/dev/zero")
    found = {item.name: item.problem for item in summaries(tmp_path)}
    files = (COMPARISON.file, LADDER.file, PROFILE.file)
    good = {
        "good-run",
        "good-ladder",
        "good-profile",
        f"names-{COMPARISON.file}",
    }  # the last is a run of nothing
    assert {name for name, problem in found.items() if not problem} == good
    bad = {f"{name}-{file}" for name in planted for file in files} - good | {"broken"}
    assert set(found) == good | bad
    assert all(problem.startswith("cannot be read: ") for name, problem in found.items() if name in bad)
    assert all("\n" not in problem for problem in found.values())
    assert main.main(["runs", "list", "."]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "good-profile" in told
    assert "empty-ladder.json" in told
    assert "cannot" in told


@pytest.mark.parametrize(
    "planted",
    [
        {"first_run_ns": 10**400},
        {"memory": {"arena": 2**63}},
        {"reference": "../elsewhere"},
        {"samples_ns": [1.0, -1.0]},
        {"samples_ns": [0]},
    ],
)
def test_a_line_with_what_nothing_can_be_made_of_is_damaged(
    tmp_path: Path, planted: dict[str, object]
) -> None:
    path = received.run(tmp_path / "run", measured=2)
    first, second = (path / RESULTS_FILE).read_bytes().splitlines(keepends=True)
    held = json.loads(first)
    held.pop("sum")
    honest = json.dumps(held | {"memory": {"arena": 2**63 - 1}}).encode() + b"\n"
    for line, left in ((json.dumps(held | planted).encode() + b"\n", 1), (honest, 2)):
        (path / RESULTS_FILE).write_bytes(line + second)
        assert len(ResultsFile(path / RESULTS_FILE, Measurement).read(tell=False)) == left
