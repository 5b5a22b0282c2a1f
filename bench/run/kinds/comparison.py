"""What a comparison is among the kinds of run."""

from __future__ import annotations

from collections.abc import Sequence

from bench.results.folder import Folder
from bench.results.kinds import Kind, Listing
from bench.results.records import PARTS, Case, Job, Measurement, Run, stem
from bench.run import options

RunFolder = Folder[Run, Measurement]


def listing(run: Run, cases: Sequence[Case]) -> Listing:
    models = tuple(stem(name) for name in run.job.models)
    return Listing(
        what=f"comparison: {', '.join(models)}",
        models=models,
        backends=tuple(dict.fromkeys(case.backend for case in cases)),
        batches=tuple(sorted({case.batch for case in cases})),
        machine=run.environment.gpu or run.environment.cpu,
    )


KIND: Kind[Run, Measurement] = Kind(
    name="comparison",
    noun="run",
    file="run.json",
    job=Job,
    case=Case,
    header=Run,
    line=Measurement,
    parts=PARTS,
    worker=("bench.measure.worker",),
    titled=lambda job: stem(job.models[0]),
    listing=listing,
    stages={
        "load": "reading the model of",
        "tune": "tuning",
        "prepare": "preparing",
        "check": "checking",
        "time": "timing",
        "end_to_end": "timing end to end",
        "layers": "measuring the layers of",
    },
    quiet=True,
    layered=True,
    verb="compare",
    options=options.COMPARE,
    resumes=True,
    view="bench.views.comparison",
    report="bench.views.reports.comparison_report",
    diff="bench.views.diff.comparison_diff",
)
