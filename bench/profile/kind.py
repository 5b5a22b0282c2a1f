"""What a profile is among the kinds of run."""

from __future__ import annotations

from collections.abc import Sequence

from bench.kinds.folder import Folder
from bench.kinds.registry import Kind, Told
from bench.profile.records import CaseProfile, Profile, ProfileJob
from bench.results.records import Case, stem
from bench.run import options
from bench.words import units

EVENTS = "events"  # the folder of their files

ProfileFolder = Folder[Profile, CaseProfile]


def told(profile: Profile, cases: Sequence[Case]) -> Told:
    backends = tuple(dict.fromkeys(case.backend for case in cases))
    environment = profile.environment
    on_gpu = any("-cuda" in name for name in backends)
    return Told(
        what=f"profile: {stem(profile.job.model)}",
        models=(stem(profile.job.model),),
        backends=backends,
        batches=tuple(sorted({case.batch for case in cases})),
        machine=(environment.gpu if on_gpu else "") or environment.cpu,
    )


def remark(made: CaseProfile) -> str:
    """How long a profiled pass takes, and how much of it is unexplained."""
    if (found := made.breakdown()) is None:
        return ""
    rest = units.percent(found.part("rest") / found.wall, 1)
    return f", a pass takes {units.duration(found.wall)} profiled, {rest} unexplained"


KIND: Kind[Profile, CaseProfile] = Kind(
    name="profile",
    file="profile.json",
    job=ProfileJob,
    case=Case,
    header=Profile,
    line=CaseProfile,
    schema=2,  # bench.results.store reads the first version, too
    parts=(EVENTS,),
    worker=("bench.profile.measure.worker",),
    titled=lambda job: f"profile-{stem(job.model)}",
    told=told,
    stages={
        "prepare": "starting cold:",
        "time": "timing, without a profiler:",
        "profile": "profiling:",
        "count": "counting:",
    },
    remark=remark,
    verb="profile",
    options=options.PROFILE,
    thin="bench.profile.thin",
    saved="bench.profile.show.saved",
    report="bench.profile.show.report",
    result="bench.profile.show.result",
    diff="bench.profile.show.diff",
)
