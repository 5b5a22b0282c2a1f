"""`ladder --compile`: every CUDA rung compiled on a machine without a GPU, and what is told of each."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import main
from bench.commands import ladder_compile as compiling
from bench.measure.ladder import compiled
from bench.questions import ladder_plan
from bench.results.ladder_records import LadderJob, RungMeasurement
from engine import backends
from engine.machine import driver as cuda_driver
from kernels import nvrtc, registry

pytestmark = pytest.mark.slow

needs_nvrtc = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))

HEADER = """/*
op = "conv"
rung = {number}
name = "{name}"
idea = "A test."
launch = "one_thread_an_output"
{more}
*/
"""
BODY = (
    'extern "C" __global__ void conv(const float* x, const float* w, const float* b, float* y) { y[0] = %s; }'
)


def own(
    folder: Path, body: str = BODY % "x[0]", number: int = 90, name: str = "mine", more: str = ""
) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:02d}_{name}.cu"
    path.write_text(HEADER.format(number=number, name=name, more=more) + body)
    return path


def job(folder: Path, *rungs: str) -> LadderJob:
    params = ladder_plan.conv_of((2, 3, 12, 12, 4, 5))
    return ladder_plan.job_of(params, "cuda", rungs=rungs, kernel_dirs=(str(folder),))


def command(*more: str) -> int:
    return main.main(["ladder", "conv", "--shape", "2,3,12,12,4,5", "--compile", *more])


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends.get("engine-cuda"), "unavailable", lambda: "there is no GPU", raising=True)
    monkeypatch.setattr(cuda_driver, "device", lambda: None)


@needs_nvrtc
def test_a_kernel_that_takes_its_sizes_one_by_one_is_told_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, name, more in ((90, "older", ", int n, int c"), (91, "newer", ", const ConvParams p")):
        own(tmp_path / "own", (BODY % "x[0]").replace("float* y)", f"float* y{more})"), number, name)
    line = ["--kernels", str(tmp_path / "own"), "--arch", "sm_80"]
    assert command(*line, "--rung", "newer") == 0
    assert command(*line, "--rung", "older") == 1
    assert "write const ConvParams p behind the pointers" in " ".join(capsys.readouterr().out.split())


@needs_nvrtc
def test_an_array_of_the_kernel_s_is_shown_as_stack_and_not_as_spills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    array = """float a[64];
        for (int i = 0; i < 64; i++) a[i] = x[i];
        a[(int)w[0] & 63] += 1;
        y[0] = a[(int)w[1] & 63]; }"""
    own(tmp_path / "own", (BODY % "x[0]").replace("y[0] = x[0]; }", array))
    line = ["--rung", "mine", "--kernels", str(tmp_path / "own"), "--arch", "sm_90"]
    assert command(*line, "--format", "csv") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["stack_nbytes"], row["spill_nbytes"]) == ("256", "0")
    assert command(*line) == 0
    shown = capsys.readouterr().out
    assert "256 B" in shown
    assert shown.index("stack") < shown.index("spills")


@pytest.mark.sampled(4, "long")
@needs_nvrtc
def test_each_rung_is_told_for_each_architecture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own(tmp_path / "own")
    rungs = ("naive", "shared_image", "winograd_2x2_3x3", "tensor_tf32", "mine")
    line = [word for name in rungs for word in ("--rung", name)]
    line += ["--kernels", str(tmp_path / "own"), "--arch", "sm_75,90", "--format"]
    assert command(*line, "csv") == 0
    rows = {(r["rung"], r["architecture"]): r for r in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert len(rows) == 10
    naive = rows["naive", "sm_90"]
    assert (naive["disposition"], naive["threads"], naive["spill_nbytes"]) == ("ok", "1024", "0")
    assert int(naive["registers"]) > 8
    assert 0 < float(naive["occupancy"]) <= 1
    assert int(rows["shared_image", "sm_75"]["shared_nbytes"]) >= 3 * 12 * 12
    assert (rows["mine", "sm_75"]["whose"], rows["mine", "sm_75"]["disposition"]) == ("yours", "ok")
    refused = rows["winograd_2x2_3x3", "sm_90"]
    assert (refused["disposition"], refused["reason"]) == ("unsupported", "needs kernel = 3, and kernel is 5")
    assert rows["tensor_tf32", "sm_75"]["disposition"] == "unsupported"
    assert "8.0" in rows["tensor_tf32", "sm_75"]["reason"]
    assert rows["tensor_tf32", "sm_90"]["disposition"] == "ok"
    assert command(*line, "json") == 0
    assert len(json.loads(capsys.readouterr().out)["rungs"]) == 10
    assert command(*line, "table") == 0
    out = capsys.readouterr().out
    assert "90 mine (yours)" in out
    assert "19 winograd_2x2_3x3 (side) for sm_75, sm_90: needs kernel = 3" in out
    assert command(*line, "md") == 0
    assert all(text.startswith("|") for text in capsys.readouterr().out.splitlines())


@needs_nvrtc
@pytest.mark.parametrize(
    ("body", "more", "told"),
    [
        (BODY % "nonsense", "", 'mine.cu:9: conv 90 mine does not compile for sm_80: identifier "nonsense"'),
        (BODY.replace("conv(", "other(") % "x[0]", "", "it must define extern"),
        ("#include <stdio.h>\n" + BODY % "x[0]", "", "printf can be used without one"),
        ("#include <cuda/nothing>\n" + BODY % "x[0]", "", '`pip install "nvidia-cuda-cccl'),
        (BODY % "x[0]", "[defines]\nBLOCK = 2048", "more than the 1024 of CUDA"),
        (
            BODY % "x[0]; __shared__ volatile float s[32000]; s[threadIdx.x] = y[0]; y[0] = s[0]",
            "",
            "uses too much shared data (128,000 bytes, 49,152 max)",
        ),
    ],
)
def test_what_would_not_run_fails_with_the_line_of_the_users_file(
    body: str, more: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own(tmp_path / "own", body, more=more)
    line = ["--kernels", str(path.parent), "--rung", "naive", "--rung", "mine", "--arch", "sm_80"]
    assert command(*line, "--format", "json") == 1
    ours, mine = json.loads(capsys.readouterr().out)["rungs"]
    assert (ours["disposition"], mine["disposition"]) == ("ok", "failed")
    assert mine["reason"].startswith(str(path))
    assert told in mine["reason"]


@needs_nvrtc
def test_a_block_that_fits_no_multiprocessor_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(tmp_path / "own", more="[defines]\nBLOCK = 1024")
    monkeypatch.setattr(nvrtc, "resources", lambda *_: nvrtc.Resources(200, 0, 0, 0))
    (found,) = compiled.run(job(tmp_path / "own", "mine"), ["sm_80"])
    assert found.disposition == "failed"
    assert "does not fit a multiprocessor of sm_80" in found.reason


@needs_nvrtc
def test_without_a_word_a_rung_is_compiled_for_what_it_asks_for(
    tmp_path: Path, no_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(tmp_path / "own", more='[needs]\ncompute_capability = "8.6"')
    wanted = job(tmp_path / "own", "naive", "mine")

    def archs() -> list[str]:
        return [m.facts[compiled.ARCHITECTURE] for m in compiled.run(wanted)]

    assert archs() == [compiled.OLDEST, "sm_86"]
    monkeypatch.setattr(cuda_driver, "device", lambda: cuda_driver.CudaDevice("a GPU", (9, 0)))
    assert archs() == ["sm_90", "sm_90"]


@needs_nvrtc
def test_a_file_that_is_saved_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own(tmp_path / "own", BODY % "nonsense")
    text = path.read_text()
    shown: list[str] = []
    path.write_text("no rung yet")
    saved = iter((text, text.replace("nonsense", "w[0] + b[0]"), "no rung", text))

    def show(job: LadderJob, found: tuple[RungMeasurement, ...], output: str) -> None:
        shown.append(found[0].disposition)

    def save_another(seconds: float) -> None:
        if (content := next(saved, None)) is None:
            raise KeyboardInterrupt
        path.write_text(content)

    monkeypatch.setattr(compiling, "show", show)
    monkeypatch.setattr(compiling.time, "sleep", save_another)
    assert command("--kernels", str(path.parent), "--rung", "mine", "--watch", "--arch", "sm_80") == 130
    assert shown == ["failed", "ok", "failed"]
    out, err = capsys.readouterr()
    assert out.count("waiting for a file to be saved") == 3
    told = [line for line in err.splitlines() if line.startswith(str(path))]
    assert len(told) == 2, "a file that is no rung is told, and the watch goes on"
    path.write_text(text)
    assert command("--kernels", str(path.parent), "--rung", "nosuch", "--watch") == 2
    assert "no rung 'nosuch'" in capsys.readouterr().err


def test_without_the_compiler_one_sentence_says_what_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = "the package cuda-bindings is not installed; some extra brings it"
    monkeypatch.setattr(nvrtc, "unavailable", lambda: reason)
    assert command() == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "the package cuda-bindings is not installed; `" in err
    assert "-m pip install 'cuda-bindings==" in err


def test_without_a_gpu_the_ladder_says_what_would_do(
    tmp_path: Path, no_gpu: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "lacking", lambda: "there is no compiler")
    assert main.main(["ladder", "conv", "--device", "cuda"]) == 2
    assert "there is no GPU; there is no compiler" in capsys.readouterr().err
    own(tmp_path / "own")
    told = compiling.hint("conv", [str(tmp_path / "own")])
    assert told.startswith("90_mine.cu: left out, for CUDA cannot run here (there is no GPU); --device cuda")
    assert compiling.hint("gemm", [str(tmp_path / "own")]) == ""
    (tmp_path / "own" / "my_kernel.py").write_text("# no rung by its name\n")
    line = ["ladder", "conv", "--device", "cpu", "--rung", "nosuch", "--kernels", str(tmp_path / "own")]
    assert main.main(line) == 2
    told, mistake = capsys.readouterr().err.splitlines()
    assert told.startswith("there is no kernel for conv on cpu in")
    assert "it is called NN_name.py; `ladder --new`" in told
    assert "no rung 'nosuch'" in mistake
    assert main.main(["ladder", "--new", "conv", str(tmp_path / "new"), "--device", "cuda"]) == 0
    out, err = capsys.readouterr()
    assert registry.find("cuda", "conv", "mine", [tmp_path / "new"]).path == Path(out.strip()).resolve()
    assert "ladder conv --compile --kernels" in err
    assert " judge " not in err, "it cannot run here"
    assert main.main(["ladder", "--new", "conv", str(tmp_path / "new"), "--device", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert f"judge {out.strip()}" in err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("conv --arch sm_80", "--arch belongs to --compile"),
        ("conv sm_80 --compile", "architectures by --arch"),
        ("conv --compile --threads 2", "--compile runs nothing and keeps nothing; leave --threads away"),
        ("conv --compile --device cpu", "leave --device cpu away"),
        ("conv --compile --watch", "--kernels DIR"),
    ],
)
def test_what_does_not_go_with_it_is_one_sentence(
    line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["ladder", *line.split()]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_12", "turing", "sm_8x"])
def test_an_architecture_that_is_not_known_is_named_beside_those_that_are(
    arch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--arch", arch) == 2
    assert (
        f"architecture '{arch}' is not one that this compiler knows; it knows sm_" in capsys.readouterr().err
    )
