"""What a ladder is among the kinds of run."""

from __future__ import annotations

from collections.abc import Sequence

from bench.kinds.folder import Folder
from bench.kinds.registry import Kind, Told
from bench.ladder.records import Ladder, LadderJob, RungCase, RungMeasurement
from bench.results.records import stem
from bench.run import options

LadderFolder = Folder[Ladder, RungMeasurement]


def told(ladder: Ladder, cases: Sequence[RungCase]) -> Told:
    job, environment = ladder.job, ladder.environment
    where = f"{stem(job.model)} {job.node}, batch {job.batch:,}" if job.model else job.title
    return Told(
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
    parts=("errors",),
    worker=("bench.ladder.measure.worker",),
    titled=lambda job: f"ladder-{job.op}",
    told=told,
    stages={"prepare": "preparing", "check": "checking", "time": "timing"},
    dispositions={"unsupported": "refused"},
    verb="ladder",
    options=options.LADDER,
    resumes=True,
    thin="bench.ladder.thin",
    saved="bench.ladder.show.saved",
    report="bench.ladder.show.report",
    result="bench.ladder.show.result",
    diff="bench.ladder.show.diff",
)
