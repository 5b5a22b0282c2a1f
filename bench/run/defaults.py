"""The default comparison: what runs where nobody says what to run, in the terminal and in the window."""

from __future__ import annotations

import msgspec

from bench.results.records import Job
from bench.run import nvml, options, settings

# A LeNet over batch sizes and an AlexNet, sized to end within half a minute on two cores; with a GPU beside
# them, whose kernels were chosen before, in no more. Two instances suffice where they take long to make, as
# AlexNet's do.
JOB = Job(
    models=("lenet5-digits", "alexnet-digits"),
    backends=(),
    batches=(1, 16, 256),
    own_batches={"alexnet-digits": (1,)},
    own_images={"alexnet-digits": (16,)},
    budget_s=0.15,
    instances=2,
)
# Without a GPU there are half as many cases, in processes of their own that two cores have to share.
BUDGET_WITHOUT_GPU_S = 0.6


def job() -> Job:
    """The default comparison on this machine, with what the user's and the project's files say. Raises
    InputError as `bench.run.settings` does."""
    fitting = JOB if nvml.Gpu.first() else msgspec.structs.replace(JOB, budget_s=BUDGET_WITHOUT_GPU_S)
    return msgspec.structs.replace(fitting, **settings.fields(options.COMPARE))
