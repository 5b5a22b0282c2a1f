"""A profile's folder: what is written is read again, and what is broken is told in one sentence."""

from __future__ import annotations

import gzip

import pytest

from bench.results import event_files as profile_store
from bench.results.event_files import events_in
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark
from bench.results.profile_records import CaseProfile, Profile, ProfileJob, planned
from bench.run.kinds.profile import KIND as PROFILE
from kernels.errors import InputError

JOB = ProfileJob(model="lenet5-digits", backends=("engine-cuda", "ort-cuda"), batches=(1, 16))
EVENTS = Events(
    activities=(
        Activity(
            name="conv", kind="kernel", start_ns=40, end_ns=90, correlation=7, grid=(4, 1, 1), nodes=("c1",)
        ),
        Activity(name="memcpy DtoH", kind="memcpy", start_ns=95, end_ns=99, nbytes=40, copy="DtoH"),
    ),
    calls=(ApiCall(name="cuLaunchKernel", domain="driver", start_ns=20, end_ns=30, thread=1, correlation=7),),
    intervals=(HostSpan(name="conv1", kind="node", start_ns=18, end_ns=31, provider="CUDA"),),
    marks=(Mark(name="pass", kind="window", start_ns=10, end_ns=110, run=0),),
)


@pytest.fixture
def folder(tmp_path):
    return PROFILE.create(tmp_path / "profile", Profile(job=JOB, cases=planned(JOB)))


def test_cases_are_planned_batch_by_batch_with_the_backends_side_by_side():
    assert [(case.batch, case.backend) for case in planned(JOB)] == [
        (1, "engine-cuda"),
        (1, "ort-cuda"),
        (16, "engine-cuda"),
        (16, "ort-cuda"),
    ]


def test_what_was_written_is_read_again(folder):
    case = folder.header.cases[1]
    name = profile_store.write_events(folder.path, case.key, EVENTS)
    folder.append(CaseProfile(case=case, disposition="ok", file=name))
    again = PROFILE.open(folder.path)
    (measurement,) = again.measurements()
    assert measurement.case == case
    assert events_in(again.path, measurement) == EVENTS


def test_the_last_line_of_a_case_counts_and_a_line_cut_short_is_passed_over(folder):
    case = folder.header.cases[0]
    folder.append(CaseProfile(case=case, disposition="crashed", reason="the worker died"))
    folder.append(CaseProfile(case=case, disposition="ok"))
    with (folder.path / "results.jsonl").open("ab") as stream:
        stream.write(b'{"case": {"mod')
    assert [m.disposition for m in folder.measurements()] == ["ok"]


def test_events_cut_short_are_told_in_one_sentence(folder):
    name = profile_store.write_events(folder.path, "case", EVENTS)
    file = folder.path / name
    file.write_bytes(file.read_bytes()[:-12])
    with pytest.raises(InputError, match="cut short"):
        profile_store.read_events(file)


@pytest.mark.parametrize("line", [b"{}", b"nonsense", b'{"type": "activity", "name": 3}', b"\xff\xfe"])
def test_a_line_that_is_no_event_is_told_with_its_number(tmp_path, line):
    file = tmp_path / "events.jsonl.gz"
    file.write_bytes(
        gzip.compress(b'{"type":"mark","name":"a","start_ns":0,"end_ns":1,"kind":"cold"}\n' + line)
    )
    with pytest.raises(InputError, match="line 2 is no event"):
        profile_store.read_events(file)


def test_a_folder_without_a_profile_is_told(tmp_path):
    with pytest.raises(InputError, match="holds no profile"):
        PROFILE.open(tmp_path)
    (tmp_path / "profile.json").write_text("{")
    with pytest.raises(InputError, match="is broken"):
        PROFILE.open(tmp_path)
