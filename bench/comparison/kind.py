"""What a comparison is among the kinds of run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bench.kinds.folder import Folder
from bench.kinds.registry import Kind, Told
from bench.results.messages import Hello, ModelLoaded
from bench.results.records import PARTS, SCHEMA, Case, Environment, Job, Measurement, Run, stem
from bench.run import options

RunFolder = Folder[Run, Measurement]


def heard(run: Run, message: object) -> Run:
    """One that is gone on with keeps the environment that it was started in, and its cases where it had any;
    a model that is told again replaces what was known of it."""
    match message:
        case Hello(environment=environment, cases=cases):
            known = run.environment if run.environment != Environment() else environment
            return msgspec.structs.replace(run, environment=known, cases=run.cases or cases)
        case ModelLoaded(model=model):
            models = {known.name: known for known in run.models} | {model.name: model}
            return msgspec.structs.replace(run, models=tuple(models.values()))
    return run


def told(run: Run, cases: Sequence[Case]) -> Told:
    models = tuple(stem(name) for name in run.job.models)
    return Told(
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
    schema=SCHEMA,
    parts=PARTS,
    planned=False,  # the window leaves it to the worker which cases a job means
    worker=("bench.measure.worker",),
    heard=heard,
    titled=lambda job: stem(job.models[0]),
    told=told,
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
    thin="bench.comparison.thin",
    saved="bench.comparison.saved",
    report="bench.comparison.report",
    result="bench.comparison.result",
    diff="bench.comparison.diff",
)
