"""What a ladder's worker has done before it is given a job."""

import subprocess
import sys

import pytest

from bench.run import client

# Of what a check needs nothing is left to be loaded, and what is rehearsed works.
CHECK = """
import sys
from bench import judge
from bench.questions import ladder_plan as plan
from bench.measure.ladder import warm
from kernels import registry
from kernels.ops.conv import Conv

warm.warm_up()
warm.rehearse()
device = plan.device_of("")
rung = registry.rungs(device, "conv")[0]
before = set(sys.modules)
p = Conv(n=2, c=3, h=9, w=9, m=4, kh=3, kw=3, out_h=7, out_w=7, bias=True, activation="tanh")
with judge.examine(rung, p, quick=True) as trial:
    trial.time_runs(3)
print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.sampled(4, "long")
def test_a_check_in_a_warm_worker_loads_nothing_more():
    made = subprocess.run(
        [sys.executable, "-c", CHECK], capture_output=True, text=True, env=client.worker_environment()
    )
    assert made.returncode == 0, made.stderr
    heavy = {"bench", "cupy", "engine", "numpy", "onnx"}
    assert [name for name in made.stdout.split() if name.partition(".")[0] in heavy] == []
