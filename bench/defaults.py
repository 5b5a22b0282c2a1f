"""The default comparison: what runs where nobody says what to run, in the terminal and in the window."""

from __future__ import annotations

from bench.records import Job

_BUDGET_S = 0.25

# A LeNet over batch sizes and an AlexNet at two, sized to end within a minute on two cores.
JOBS = (
    Job(
        models=("lenet5-digits",),
        backends=(),
        batches=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        budget_s=_BUDGET_S,
    ),
    Job(models=("alexnet-digits",), backends=(), batches=(1, 4), images=(32,), budget_s=_BUDGET_S),
)
