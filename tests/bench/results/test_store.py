"""Run folders: whole lines, whole files, clear refusals, and a resume that runs what is missing."""

import os
import resource
import sys

import pytest

from bench.results.messages import Hello, ModelLoaded
from bench.results.records import Case, Environment, Job, Measurement, ModelInfo, Run
from bench.results.results_file import line_of
from bench.results.store import RESULTS_FILE, write_atomically
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import InputError

JOB = Job(models=("net",), backends=("one", "two"), batches=(1, 2))
CASES = tuple(
    Case(model="net", backend=backend, precision="fp32", batch=batch)
    for batch in (1, 2)
    for backend in ("one", "two")
)


def measurement(case, disposition="ok", samples=(1.5, 2.5)):
    return Measurement(case=case, disposition=disposition, samples_ns=samples)


@pytest.fixture
def folder(tmp_path):
    with COMPARISON.create(tmp_path / "run", Run(job=JOB, cases=CASES, command="compare net")) as folder:
        yield folder


def test_what_was_appended_is_read_back_by_another(folder):
    for case in CASES[:2]:
        folder.append(measurement(case))
    again = COMPARISON.open(folder.path)
    assert again.header == folder.header
    assert again.measurements() == tuple(measurement(case) for case in CASES[:2])
    assert again.missing() == CASES[2:]


def test_a_cut_last_line_is_dropped_and_overwritten(folder):
    folder.append(measurement(CASES[0]))
    folder.append(measurement(CASES[1]))
    folder.close()
    path = folder.path / RESULTS_FILE
    path.write_bytes(path.read_bytes()[:-10])
    again = COMPARISON.resume(folder.path, JOB)
    assert [m.case for m in again.measurements()] == [CASES[0]]
    assert CASES[1] in again.missing()
    with again:
        again.append(measurement(CASES[1]))
    assert [m.case for m in COMPARISON.open(folder.path).measurements()] == list(CASES[:2])


def test_a_broken_line_in_the_middle_costs_that_line_and_is_told_once(folder, caplog):
    folder.append(measurement(CASES[0]))
    with (folder.path / RESULTS_FILE).open("ab") as file:
        file.write(b"{nonsense\n")
    folder = COMPARISON.open(folder.path)
    folder.append(measurement(CASES[1]))
    assert [m.case for m in folder.measurements()] == [CASES[0], CASES[1]]
    assert folder.missing() == CASES[2:]
    assert len(caplog.messages) == 1
    assert "line 2 of" in caplog.messages[0]


def test_crashed_and_timed_out_stay_and_cancelled_is_run_again(folder):
    for case, disposition in zip(CASES, ("crashed", "timed_out", "cancelled"), strict=False):
        folder.append(measurement(case, disposition, ()))
    assert folder.missing() == CASES[2:]


def test_the_last_measurement_of_a_case_counts(folder):
    folder.append(measurement(CASES[0], "cancelled", ()))
    folder.append(measurement(CASES[0]))
    assert folder.measurements() == (measurement(CASES[0]),)


def test_the_environment_is_filled_in_once_and_models_as_they_are_told(folder):
    folder.take_message(Hello(environment=Environment(machine="first")))
    folder.take_message(ModelLoaded(model=ModelInfo(name="net")))
    folder.take_message(Hello(environment=Environment(machine="second")))
    folder.take_message(ModelLoaded(model=ModelInfo(name="other")))
    folder.take_message(ModelLoaded(model=ModelInfo(name="net", parameters=7)))
    run = COMPARISON.open(folder.path).header
    assert run.environment.machine == "first"
    assert [(model.name, model.parameters) for model in run.models] == [("net", 7), ("other", 0)]


def test_resume_needs_the_same_job_and_names_what_differs(folder):
    assert COMPARISON.resume(folder.path, JOB).job == JOB
    other = Job(models=("net",), backends=("one", "two"), batches=(1, 4))
    with pytest.raises(InputError, match="started with batches = 1, 2, not 1, 4"):
        COMPARISON.resume(folder.path, other)


def test_folders_that_cannot_take_a_run_are_refused_untouched(tmp_path, folder):
    run = folder.header
    with pytest.raises(InputError, match="already holds a run"):
        COMPARISON.create(folder.path, run)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds something else \(thesis\.txt\)"):
        COMPARISON.create(foreign, run)
    assert [p.name for p in foreign.iterdir()] == ["thesis.txt"]
    with pytest.raises(InputError, match="a file is in the way"):
        COMPARISON.create(foreign / "thesis.txt", run)
    with pytest.raises(InputError, match=r"cannot write|cannot be made"):
        COMPARISON.create(foreign / "thesis.txt" / "deeper", run)
    with pytest.raises(InputError, match="holds no run"):
        COMPARISON.open(foreign)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_an_unwritable_place_is_one_sentence(folder):
    with pytest.raises(InputError, match="cannot write the run folder"):
        COMPARISON.create("/proc/kernelscope/run", folder.header)


def test_a_broken_or_newer_run_file_is_named(folder):
    path = folder.path / COMPARISON.file
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match=r"run\.json is broken"):
        COMPARISON.open(folder.path)
    path.write_text('{"schema": 999, "shape": "unheard of"}')
    with pytest.raises(InputError, match="newer Kernelscope"):
        COMPARISON.open(folder.path)


@pytest.fixture
def small_disk():
    """No file may grow beyond 4,000 bytes: a full disk, as far as write(2) is concerned."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_whole_lines_only(folder, small_disk):
    folder.append(measurement(CASES[0]))
    with pytest.raises(InputError, match="what was measured before is kept"):
        folder.append(measurement(CASES[1], samples=tuple(float(i) for i in range(2000))))
    assert (folder.path / RESULTS_FILE).read_bytes().endswith(b"\n")
    folder.append(measurement(CASES[2]))
    assert [m.case for m in folder.measurements()] == [CASES[0], CASES[2]]


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, small_disk):
    path = tmp_path / "deep" / "file"
    write_atomically(path, b"old")
    with pytest.raises(InputError, match="cannot write"):
        write_atomically(path, b"x" * 5000)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["file"]


def forged(path):
    """A line with a right checksum, as the program would write it."""
    path.write_bytes(path.read_bytes() + line_of(measurement(CASES[0], samples=(0.1,))))


def emptied(path):
    path.write_bytes(b"")


def replaced(path):
    other = path.with_name("other")
    other.write_bytes(line_of(measurement(CASES[0], samples=(0.1,))))
    other.replace(path)


def linked(path):
    other = path.with_name("other")
    path.rename(other)
    other.write_bytes(line_of(measurement(CASES[0], samples=(0.1,))))
    path.symlink_to(other)


def removed(path):
    path.unlink()


def a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def in_place(path):
    path.write_bytes(path.read_bytes().replace(b"1.5", b"0.5"))


@pytest.mark.parametrize("do", [forged, emptied, replaced, linked, removed, a_pipe, in_place])
@pytest.mark.parametrize("at_the_end", [False, True])
def test_what_somebody_else_wrote_is_found_and_taken_back(folder, do, at_the_end):
    """It ends the run, and no view has it."""
    folder.claim()
    folder.append(measurement(CASES[0]))
    do(folder.path / RESULTS_FILE)
    with pytest.raises(InputError, match="restored") as caught:
        folder.check() if at_the_end else folder.append(measurement(CASES[1]))
    assert at_the_end or CASES[1].words in str(caught.value)
    assert COMPARISON.open(folder.path).measurements() == (measurement(CASES[0]),)
    folder.append(measurement(CASES[1]))
    folder.check()
    assert len(COMPARISON.open(folder.path).measurements()) == 2
