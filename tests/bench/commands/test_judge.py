"""The command `judge`, of judgements that are given: what it prints, its exit code, what CI servers read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

import main
from bench.commands import judge_server
from bench.questions import given_kernel
from bench.questions.given_kernel import GivenKernel
from bench.results.finding import Finding
from bench.run.kinds.ladder import KIND as LADDER
from bench.views import ladder as ladder_view
from bench.views.tables import judgement_tables as tables
from bench.views.tables.judgement_tables import Against, JudgementOutput
from kernels.errors import InputError, KernelError
from tests.bench.ladder.test_ladder_folders import example

REFERENCE = Against(
    name="reference", title="ONNX Runtime (CPU)", time_s=2e-3, low_s=1.99e-3, high_s=2.01e-3, speedup=2.0,
    speedup_low=1.99, speedup_high=2.01, verdict="FASTER", grade="faster",
)  # fmt: skip


def judgement(**fields: Any) -> JudgementOutput:
    plain = tables.no_kernel("90 mine", "conv", "cpu", "", 1.0)
    known: dict[str, Any] = {
        "right": True, "outcome": "ok", "grade": "faster", "title": "conv", "precision": "fp32",
        "time_s": 1e-3, "low_s": 0.99e-3, "high_s": 1.01e-3, "against": (REFERENCE,),
    }  # fmt: skip
    return msgspec.structs.replace(plain, **known | fields)


WRONG = judgement(
    right=False, outcome="incorrect", why="the bias is missing", grade="wrong", time_s=None, low_s=None,
    high_s=None, against=(),
    finding=Finding(fault="bias", reason="the bias is missing", index=(0, 1), expected="1", got="0"),
)  # fmt: skip


ONCE = msgspec.structs.replace(WRONG, why="1 of 2 elements is wrong, first (0, 1): 0 instead of 1")


@pytest.mark.parametrize(
    ("judged", "code", "said", "failing"),
    [
        (judgement(), 0, ("right, 1.00 ms", "2.00× faster than ONNX Runtime (CPU)"), ""),
        (WRONG, 1, ("wrong", "the bias is missing", "first wrong element (0, 1): 0 instead of 1"), "failure"),
        (ONCE, 1, (ONCE.why,), "failure"),
        (judgement(right=None, outcome="unsupported", why="it needs group = 1"), 1, ("refused",), "error"),
    ],
    ids=["right", "wrong", "wrong, with its place", "refused"],
)
def test_a_judgement_is_told_and_is_the_exit_code(
    judged: JudgementOutput,
    code: int,
    said: tuple[str, ...],
    failing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(judge_server, "judged_by", lambda *_: judged)
    junit = tmp_path / "result.xml"
    assert main.main(["judge", "90_mine.py", "--junit", str(junit)]) == code
    printed = " ".join(capsys.readouterr().out.split())
    for text in said:
        assert text in printed
    assert printed.count("(0, 1)") == (judged.finding is not None), "the place is told once"
    (case,) = ElementTree.parse(junit).iter("testcase")
    assert [part.tag for part in case if part.tag in ("failure", "error")] == [failing] * bool(failing)
    assert main.main(["judge", "90_mine.py", "--format", "json"]) == code
    assert json.loads(capsys.readouterr().out)["right"] is judged.right


def test_what_a_kernel_prints_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "def bind(p, inputs, output, workspace):", "    return lambda: print('seen', p.axis)"
    (tmp_path / "mine.py").write_text("\n".join(lines))
    of_softmax = ["--op", "softmax", "--device", "cpu", "--no-reference", "--quick"]
    assert main.main(["judge", str(tmp_path / "mine.py"), *of_softmax]) == 1
    out, err = capsys.readouterr()
    assert "never writes" in " ".join(out.split())
    printed = next(line for line in err.splitlines() if line.startswith("printed: "))
    assert printed.split(" · ").count("printed: seen 10") == 1, "once, though each pass prints it"


def test_what_is_slower_than_the_baseline_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path / "before.json"
    half = msgspec.structs.replace(
        REFERENCE, speedup=1.0, speedup_low=0.99, speedup_high=1.01, verdict="SAME"
    )
    now = judgement(against=(half,), time_s=2e-3, low_s=1.99e-3, high_s=2.01e-3)
    given: list[Any] = []

    def judged_by(warm: Any, kernel: Any, asked: Any, *_: Any) -> JudgementOutput:
        given.append(asked.baseline)
        return now if asked.baseline is None else tables.with_baseline(now, asked.baseline)

    monkeypatch.setattr(judge_server, "judged_by", judged_by)
    for earlier, code in ((judgement(), 1), (now, 0)):
        before.write_bytes(msgspec.json.encode(earlier))
        assert main.main(["judge", "90_mine.py", "--baseline", str(before)]) == code
    assert given == [judgement(), now]
    assert "2.00× slower than the baseline" in " ".join(capsys.readouterr().out.split())
    lonely = msgspec.structs.replace(half, undecided="not decided: one sample", verdict="UNCLEAR")
    (*_, held) = tables.with_baseline(now, judgement(against=(lonely,), doubts=("it was hot",))).against
    assert held.undecided == "not decided: one sample (of the baseline)"
    before.write_text("{}")
    assert main.main(["judge", "90_mine.py", "--baseline", str(before)]) == 2
    assert "is no output of `judge --format json`" in capsys.readouterr().err
    ladder, _ = example()
    with pytest.raises(InputError, match="only the same work"):
        tables.check_baseline(now, ladder, "fp32")
    job = ladder.job
    same = {"op": job.op, "device": job.device, "title": job.title, "l2": job.l2, "threads": job.threads}
    tables.check_baseline(judgement(**same), ladder, "fp32")
    tables.check_baseline(judgement(**same | {"l2": "", "threads": None}), ladder, "fp32")  # it told neither
    for other, told in (({"l2": "cold"}, "with --l2 cold"), ({"threads": 7}, "--threads 7")):
        with pytest.raises(InputError, match=f"{told}.*give the same"):
            tables.check_baseline(judgement(**same | other), ladder, "fp32")


def test_a_kernel_is_a_file_a_text_or_a_body_without_a_header(tmp_path: Path) -> None:
    header = '# op = "softmax"\n# rung = 91\n# name = "own"\n# idea = "Mine."\n'
    body = "def bind(p, inputs, output, workspace):\n    return lambda: None\n"
    apart = tmp_path / "apart"
    apart.mkdir()
    for kernel, number, name in (
        (GivenKernel(header + body), 91, "own"),
        (GivenKernel(body, "softmax.py"), 90, "mine"),
    ):
        rung = given_kernel.placed(kernel, apart, "softmax")
        assert (rung.op, rung.number, rung.name, rung.device) == ("softmax", number, name, "cpu")
    file = tmp_path / "91_own.py"
    file.write_text(header + body)
    assert given_kernel.placed(GivenKernel(file=str(file)), apart).path == file  # where its helpers lie
    for kernel, op, why in (
        (GivenKernel(body), "", "name the operator"),
        (GivenKernel(header + body), "conv", "is of softmax, as its header says, and not of conv"),
        (GivenKernel(header, "kernel.cpp"), "", "a .cu or a .py file"),
        (GivenKernel(body), "sotfmax", "did you mean 'softmax'"),
        (GivenKernel(file=str(tmp_path / "none.py")), "", "no such file"),
    ):
        with pytest.raises(InputError, match=why):
            given_kernel.placed(kernel, apart, op)
    with pytest.raises(InputError, match="written for cpu"):
        given_kernel.placed(GivenKernel(header + body), apart, device="cuda")
    with pytest.raises(KernelError, match="header"):
        given_kernel.placed(GivenKernel("__global__ void softmax() {}\n"), apart, "softmax")


def test_a_ladder_is_a_test_for_each_rung(tmp_path: Path) -> None:
    ladder, found = example()
    with LADDER.create(tmp_path / "ladder", ladder) as folder:
        folder.claim()
        for m in found:
            wrong = {"disposition": "incorrect", "reason": "the bias is missing", "samples_ns": ()}
            folder.append(msgspec.structs.replace(m, **wrong) if m.case.user else m)
        root = ElementTree.fromstring(ladder_view.as_tests(folder))
    cases = list(root.iter("testcase"))
    assert len(cases) == len(found)
    (failure,) = root.iter("failure")
    assert failure.get("message") == "the bias is missing"
    assert root.get("name") == "kernelscope ladder"
    assert root.get("failures") == "1"
