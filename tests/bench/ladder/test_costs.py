"""What a line is found to cost beyond what it must, and what is said against a mistake: each with a kernel
that does it and the same one without it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from bench.judge.remedies import remedy
from bench.measure.ladder import counts, entrants, line_counts, runner, simulated
from bench.measure.reporter import Reporter
from bench.questions import ladder_plan
from bench.questions.ladder_questions import CountsAnswer, CountsQuestion, counts_command
from kernels import numba_support, nvrtc, registry
from kernels.ptx.program import Device, packed
from kernels.ptx.reads import of_a_block
from tests.kernels.simulated import check
from tests.kernels.simulated.planted import Planted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
    pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable())),
]

HEAD = 'extern "C" __global__ void mine(const float* x, float* y, float* z, int n) {\n'
SIDE = 32  # of the tiles; a block has as many threads a row, and 8 rows
# Name, kind, body, what the sentence has.
COSTS = (
    ("a column of a tile", "bank conflict", """
    __shared__ float tile[32][«32|33»];
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    for (int k = ty; k < 32; k += 8) tile[k][tx] = x[(k * 32 + tx) % n];
    __syncthreads();
    for (int k = ty; k < 32; k += 8) z[(k * 32 + tx) % n] = tile[tx][k];  //!
}""", ("32-way", "`tile[tx][k]`", "`tile[32][33]`")),
    ("every second word", "bank conflict", """
    __shared__ float line[512];
    line[threadIdx.x] = line[threadIdx.x + 256] = x[threadIdx.x];
    __syncthreads();
    z[threadIdx.x] = line[threadIdx.x * «2|1»];  //!
}""", ("2-way", "`line[threadIdx.x * 2]`", "neighbouring elements")),
    ("a column of a matrix", "uncoalesced access", """
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    z[threadIdx.x] = x[«tx * 16 + ty|ty * 16 + tx»];  //!
}""", ("16 elements apart", "threadIdx.x")),
    ("every third element", "uncoalesced access", """
    if (threadIdx.x < 160) z[threadIdx.x] = x[threadIdx.x * «3|1»];  //!
}""", ("3 elements apart",)),
    ("odd and even threads", "divergent branch", """
    float v = x[threadIdx.x];
    if («threadIdx.x|threadIdx.x / 32» % 2) {  //!
        for (int k = 0; k < n % 7 + 3; ++k) v = v * v + z[k];
    } else {
        for (int k = 0; k < n % 5 + 2; ++k) v = v * 3 - z[k];
    }
    y[threadIdx.x] = v;
}""", ("different ways", "same for the 32 threads")),
    ("each thread reads a row anew", "redundant loads", """
    __shared__ float row[16];
    if (threadIdx.x < 16) row[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += «x|row»[k] * threadIdx.x;  //!
    y[threadIdx.x] = sum;
}""", ("256 times", "shared memory")),
    ("an array of a thread's own", "local memory", """
    float own[4] = {x[threadIdx.x], 1, 2, 3};
    z[threadIdx.x] = own[«(int)y[threadIdx.x] % 4|3»];  //!
    «|if (threadIdx.x == 3) printf("%f", x[0]);»
}""", ("`own`", "#pragma unroll")),
)  # fmt: skip

# Name, kind, body, what the remedy has.
MISTAKES = (
    ("no barrier", "race", """
    __shared__ float s[THREADS];
    s[threadIdx.x] = x[threadIdx.x];  //?
    «|__syncthreads();»
    z[threadIdx.x] = s[THREADS - 1 - threadIdx.x];  //!
}""", "put __syncthreads() between lines 3 and 5"),
    ("no barrier before the next tile", "race", """
    __shared__ float s[THREADS];
    float sum = 0;
    for (int k = 0; k < 3; ++k) {
        s[threadIdx.x] = x[threadIdx.x] + k;  //!
        __syncthreads();
        sum += s[THREADS - 1 - threadIdx.x];  //?
        «|__syncthreads();»
    }
    z[threadIdx.x] = sum;
}""", "behind line 7, before a loop goes back to line 5"),
    ("the edge of a tile", "uninitialised", """
    __shared__ float s[THREADS];
    if (threadIdx.x < n - 4) s[threadIdx.x] = x[threadIdx.x];«| else s[threadIdx.x] = 0;»
    __syncthreads();
    z[threadIdx.x] = s[THREADS - 1 - threadIdx.x];  //!
}""", "write 0 there"),
    ("one row too many", "outside", """
    __shared__ float s[THREADS];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k «<=|<» THREADS; ++k) sum += s[k];  //!
    z[threadIdx.x] = sum;
}""", "one beyond the end: indices go from 0 to 255"),
    ("an input that is absent", "outside", """
    const float* bias = (const float*)(size_t)(n - 256);
    float v = x[threadIdx.x];
    «|if (bias)» v += bias[threadIdx.x + 4];  //!
    z[threadIdx.x] = v;
}""", "this pointer is null"),
    ("a loop that nothing ends", "endless", """
    volatile float* seen = y;
    float v = x[threadIdx.x];
    while («seen[1] < 1e30f|v < 0»)  //!
        v += 1;  //!
    z[threadIdx.x] = v;
}""", "what it reads has to change"),
)  # fmt: skip


def planted(name: str, kind: str, body: str) -> Planted:
    return Planted(name, kind, (HEAD + body.lstrip("\n")).replace("THREADS", "256"), 256, 1)


def costs(folder: Path, text: str) -> list[counts.Cost]:
    made = Device(check.program(folder, text))
    x = np.arange(256, dtype=np.float32) % 17 + 1
    buffers = [made.buffer(name, x, 4, writable=name != "x", written=True) for name in "xyz"]
    given = packed([np.uint64(b.address) for b in buffers] + [np.int32(256)])
    report = made.launch("mine", (1,), (256,), given, seconds=5)
    return counts.costs(report, text, of_a_block(made, "mine", (1,), (256,), given))


@pytest.mark.parametrize(("name", "kind", "body", "told"), COSTS, ids=[it[0] for it in COSTS])
def test_a_cost_is_told_with_its_line_and_what_ends_it(
    name: str, kind: str, body: str, told: tuple[str, ...], tmp_path: Path
) -> None:
    mistake = planted(name, kind, body)
    found = [cost for cost in costs(tmp_path, mistake.wrong) if cost.kind == kind]
    assert {cost.line for cost in found} == mistake.lines("//!"), [cost.words for cost in found]
    for words in told:
        assert words in found[0].words
    found = [cost for cost in costs(tmp_path, mistake.right) if cost.kind == kind]
    assert not found, found[0].words


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "kind", "body", "told"), MISTAKES, ids=[it[0] for it in MISTAKES])
def test_a_mistake_is_told_with_what_ends_it(
    name: str, kind: str, body: str, told: str, tmp_path: Path
) -> None:
    mistake = planted(name, kind, body)
    found = check.findings(tmp_path, mistake, mistake.wrong)
    assert check.told(mistake, found), [one.words for one in found]
    assert any(told in remedy(one, mistake.wrong) for one in found if one.kind == kind)
    assert check.findings(tmp_path, mistake, mistake.right) == []


@pytest.mark.sampled(4, "long")
def test_each_line_of_a_rung_is_counted_in_a_process_that_ends() -> None:
    job = ladder_plan.job_of(ladder_plan.conv_of((2, 3, 12, 12, 4, 5)), "cuda")
    asked = msgspec.json.encode(CountsQuestion(job=job, rung="shared_image")) + b"\n"
    told = subprocess.run(counts_command(), input=asked, capture_output=True, check=True).stdout
    answer = msgspec.json.decode(told.splitlines()[-1], type=CountsAnswer)
    assert answer.error == ""
    text = registry.find("cuda", "conv", "shared_image").source.splitlines()
    (worst,) = (it for it in answer.lines if it.wavefronts > it.least_wavefronts > 0)
    assert "sum +=" in text[worst.line - 1]
    assert sum(it.sectors for it in answer.lines) > 0
    nothing = line_counts.answer(CountsQuestion(job=job, rung="nosuch"))
    assert "nosuch" in nothing.error
    assert nothing.lines == ()


def test_beside_times_a_rung_is_counted_too_and_whatever_comes_of_that_its_times_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    params = ladder_plan.conv_of((2, 3, 12, 12, 4, 5))
    job = ladder_plan.job_of(params, "cuda", rungs=("shared_image",), counts=True)
    (case, *_) = ladder_plan.plan(job).cases
    told = Reporter(lambda _: None, lambda: False)

    def counted(**changes: object) -> entrants.RungContender:
        asked = msgspec.structs.replace(job, **changes)
        contender = entrants.RungContender(asked, params, case, told, "")
        contender.trial = SimpleNamespace(notes=[])  # type: ignore[assignment]
        runner.count(contender, None, "", told)  # type: ignore[arg-type]
        return contender

    assert counted().recorded["counted"]["wavefronts"] > 0
    assert counted(counts=False).recorded == {}
    monkeypatch.setattr(simulated, "missing", lambda: "there is no compiler")
    made = counted()
    assert made.recorded == {}
    assert made.trial.notes == ["not counted: there is no compiler"]
