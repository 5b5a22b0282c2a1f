"""What a profile is among the kinds of run."""

from __future__ import annotations

from collections.abc import Sequence

from bench.results.event_files import EVENTS
from bench.results.folder import Folder
from bench.results.kinds import Kind, Listing
from bench.results.profile_records import CaseProfile, Profile, ProfileJob
from bench.results.records import Case, stem
from bench.run import options
from bench.words import units

ProfileFolder = Folder[Profile, CaseProfile]


def listing(profile: Profile, cases: Sequence[Case]) -> Listing:
    backends = tuple(dict.fromkeys(case.backend for case in cases))
    environment = profile.environment
    on_gpu = any("-cuda" in name for name in backends)
    return Listing(
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
    worker=("bench.measure.profile.worker",),
    titled=lambda job: f"profile-{stem(job.model)}",
    listing=listing,
    stages={
        "prepare": "starting cold:",
        "time": "timing, without a profiler:",
        "profile": "profiling:",
        "count": "counting:",
    },
    remark=remark,
    verb="profile",
    options=options.PROFILE,
    view="bench.views.profile",
    report="bench.views.reports.profile_report",
    diff="bench.views.diff.profile_diff",
)
