"""The page says what was measured, and of what was not that it was not."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper

from engine.ops import LISTED
from tests.engine.harness import make_model
from tests.rehearsal.machine import Machine as Looked
from tests.zoo import kept, measuring, page
from tests.zoo.drawn import Recipe, emptied
from tests.zoo.kept import Asked, Kept, Machine, Outcome
from tests.zoo.nets import NETS, exports

pytestmark = pytest.mark.slow

LENET, LENET_2 = "lenet_view-torchscript-fixed", "lenet_view-torchscript-dynamic"
TIMES = {"median_s": 2e-3, "low_s": 1.9e-3, "high_s": 2.1e-3}


def measured(*outcomes: Outcome, device: str = "cpu") -> Kept:
    return Kept(
        machine=Machine(device=device, words=("a machine", "its software")),
        exported={"torchscript": "pytorch 2.13.0"},
        asked={"lenet_view-dynamo-fixed": Asked(settings="--batch 4", day="2026-01-02")},
        outcomes=outcomes,
    )


def lines_of(text: str, net: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"| {net} |")]


def test_what_is_right_wrong_refused_and_not_measured_is_told_apart() -> None:
    title = NETS[0].title
    one = Outcome(file=LENET, backend="engine-cpu", batch=1, result="ok", error=3e-7, speedup=0.5, **TIMES)
    two = Outcome(file=LENET_2, backend="engine-cpu", batch=4, result="ok", doubtful=True, **TIMES)
    reference = [
        Outcome(file=o.file, backend="ort-cpu", batch=o.batch, result="ok", **TIMES) for o in (one, two)
    ]
    summary, *rows = lines_of(page.text({"box": measured(one, two, *reference)}), title)
    assert summary == f"| {title} | 4 | 2 right, 2 not measured | not measured |"
    assert rows[0].endswith("| 1, fixed | right | 3.0e-07 |  | 2.00 ms | 2.00 ms | 0.500× |")
    assert "2.00 ms !" in rows[1]
    wrong = msgspec.structs.replace(two, result="incorrect", reason="the output is off", batch=64)
    refused = msgspec.structs.replace(one, result="unsupported", reason="no Det; it supports Add")
    for listed in ("it supports Add, Mul", LISTED):
        refused = msgspec.structs.replace(refused, reason=f"no Det; {listed}")
        text = page.text({"box": measured(refused, two, wrong, *reference)})
        summary, *rows = lines_of(text, title)
        assert summary == f"| {title} | 4 | 1 refused, 1 **wrong**, 2 not measured | not measured |"
        assert len(rows) == 3
        assert "- lenet_view-torchscript-dynamic (batch 64): the output is off\n" in text
        assert "- lenet_view-torchscript-fixed (batch 1): no Det\n" in text


def test_a_machine_of_each_device_has_its_column() -> None:
    gpu = Outcome(file=LENET, backend="engine-cuda", batch=1, result="crashed")
    text = page.text({"box": measured(), "h200": measured(gpu, device="cuda")})
    [summary, row] = lines_of(text, NETS[0].title)
    assert summary.endswith("| 4 | not measured | 1 crashed, 3 not measured |")
    assert "| crashed |" in row
    assert all(lines_of(text, net.title) for net in NETS)


def test_every_file_has_a_name_of_its_own() -> None:
    stems = [export.stem for export in exports()]
    assert len(set(stems)) == len(stems)
    assert all(stem.count("-") == 2 for stem in stems)
    with pytest.raises(ValueError, match="no net alexnet; there are lenet_view, "):
        exports(("alexnet",))


def test_the_page_is_what_was_measured() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(kept.every()), f"write it anew: {page.COMMAND}"


def net(path: Path, op_type: str, batch: int | str) -> None:
    """A file without weights."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node(op_type, ["c"], ["y"]),
    ]
    proto = make_model(nodes, {"x": (batch, 1, 6, 6)}, ["y"], {"w": np.ones((3, 1, 3, 3), np.float32)}, 17)
    onnx.save(emptied(proto, {"w": Recipe(0.0, 0.4)}, 1), path)


@pytest.mark.sampled(4, "long")
def test_a_folder_is_measured_and_what_was_kept_of_other_nets_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    other = Outcome(file="vgg11-dynamo-fixed", backend="engine-cpu", batch=1, result="ok")
    stale = [Outcome(file=LENET, backend="engine-cpu", batch=9, result="ok")]
    stale.append(msgspec.structs.replace(other, file="gone-dynamo-fixed"))
    kept.save(measured(*stale, other), kept.file_of("cpu"))
    net(tmp_path / f"{LENET}.onnx", "Relu", 1)
    net(tmp_path / f"{LENET_2}.onnx", "Det", "N")
    said: list[str] = []
    machine = replace(Looked(), no_gpu="there is none")
    measuring.measure(
        tmp_path, ("lenet_view", "vgg11"), machine, ("--batch", "2", "--budget", "0.05"), said.append
    )
    outcomes = kept.every()["cpu"].outcomes
    came = {(o.file, o.backend, o.batch): o.result for o in outcomes}
    assert came == {
        (LENET, "engine-cpu", 1): "ok",
        (LENET, "ort-cpu", 1): "ok",
        (LENET_2, "engine-cpu", 2): "unsupported",
        (LENET_2, "ort-cpu", 2): "ok",
        ("vgg11-dynamo-fixed", "engine-cpu", 1): "ok",
    }
    [refused] = [o for o in outcomes if o.result == "unsupported"]
    assert "Det" in refused.reason
    assert len(said) == 4
    silent = subprocess.CompletedProcess([], 2, stdout="no table", stderr="a warning\nno such backend\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: silent)
    measuring.measure(tmp_path, ("lenet_view",), machine, ("--batch", "2", "--budget", "0.05"), said.append)
    outcomes = kept.every()["cpu"].outcomes
    failed = [(o.file, o.reason) for o in outcomes if o.result == "failed"]
    assert failed == [(LENET, "no such backend"), (LENET_2, "no such backend")]
    assert [line for line in page.text(kept.every()).splitlines() if "| failed |" in line]
    with pytest.raises(ValueError, match=r"tests\.zoo\.export"):
        measuring.measure(
            tmp_path, ("googlenet",), machine, ("--batch", "2", "--budget", "0.05"), said.append
        )
