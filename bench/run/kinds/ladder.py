"""What a ladder is among the kinds of run."""

from __future__ import annotations

from collections.abc import Sequence

from bench.results.folder import Folder
from bench.results.kinds import Kind, Listing
from bench.results.ladder_records import Ladder, LadderJob, RungCase, RungMeasurement
from bench.results.records import stem
from bench.results.store import SAVES_FILE
from bench.run import options
from bench.run.supervisor import COMPILE, RIGHT

LadderFolder = Folder[Ladder, RungMeasurement]


def listing(ladder: Ladder, cases: Sequence[RungCase]) -> Listing:
    job, environment = ladder.job, ladder.environment
    where = f"{stem(job.model)} {job.node}, batch {job.batch:,}" if job.model else job.title
    return Listing(
        what=f"{job.op} ladder: {where}",
        models=(stem(job.model),) if job.model else (),
        backends=(f"engine-{job.device}",),
        batches=(job.batch,),
        machine=environment.gpu if job.device == "cuda" else environment.cpu,
        node=job.node or job.title,
    )


KIND: Kind[Ladder, RungMeasurement] = Kind(
    name="ladder",
    file="ladder.json",
    job=LadderJob,
    case=RungCase,
    header=Ladder,
    line=RungMeasurement,
    schema=2,  # bench.results.store reads the first version, too
    parts=("errors", SAVES_FILE),
    worker=("bench.measure.ladder.worker",),
    titled=lambda job: f"ladder-{job.op}",
    listing=listing,
    stages={
        COMPILE: "compiling",
        "prepare": "preparing",
        "check": "checking",
        RIGHT: "right, not timed yet:",
        "time": "timing",
    },
    dispositions={"unsupported": "refused"},
    verb="ladder",
    options=options.LADDER,
    resumes=True,
    view="bench.views.ladder",
    report="bench.views.reports.ladder_report",
    diff="bench.views.diff.ladder_diff",
)
