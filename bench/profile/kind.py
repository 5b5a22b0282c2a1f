"""What a profile is among the kinds of run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bench.kinds.folder import Folder
from bench.kinds.registry import Kind, Told
from bench.profile.records import SCHEMA, CaseProfile, Profile, ProfileJob
from bench.results.messages import Hello, LimitsMeasured, ModelLoaded
from bench.results.records import Case, stem
from bench.run import options
from bench.words import units

EVENTS = "events"  # the folder of their files

ProfileFolder = Folder[Profile, CaseProfile]


def heard(profile: Profile, message: object) -> Profile:
    match message:
        case Hello(environment=environment):
            return msgspec.structs.replace(profile, environment=environment)
        case ModelLoaded(model=model):
            return msgspec.structs.replace(profile, model=model)
        case LimitsMeasured(limits=limits):
            return msgspec.structs.replace(profile, limits=profile.limits | {limits.device: limits})
    return profile


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
    schema=SCHEMA,
    parts=(EVENTS,),
    worker=("bench.profile.measure.worker",),
    heard=heard,
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
