"""What can be asked of a ladder before it is run."""

from pathlib import Path

import onnx
import pytest

from bench.measure.ladder import describe as ladder_describe
from bench.questions import ladder_plan
from bench.questions.ladder_questions import TASKS, DeviceInfo, LadderQuestion, node_of
from bench.results.messages import Done
from kernels import registry, tasks
from kernels.errors import InputError
from kernels.ops import OPS
from tests.engine.backends.nets import small_net
from tests.kernels.test_tasks import made

pytestmark = pytest.mark.usefixtures("in_a_folder")

MODEL = "lenet5-digits"
HEADER = '# op = "conv"\n# rung = {number}\n# name = "{name}"\n# idea = "Of a test."\n'
CUDA = """/*
op = "turned"
rung = 1
name = "right"
idea = "Of a test."
[[launch]]
grid = "1"
block = 1
*/
extern "C" __global__ void turned(const float* x, const float* s, float* y, const TurnedParams p) {}
"""


def ask(**fields):
    return ladder_describe.answer(LadderQuestion(number=7, **{"model": MODEL, "device": "cpu"} | fields))


def test_an_answer_is_a_ladder_ready_to_run():
    answer = ask()
    assert (answer.number, answer.error) == (7, "")
    assert answer.ladder.job.node == "conv1"
    found = [(node.node, node.op) for node in answer.nodes]
    assert found[:3] == [("conv1", "conv_pool"), ("conv1", "conv"), ("pool1", "pool")]
    assert {node.op for node in answer.nodes[:-1]} <= set(OPS)
    assert (answer.nodes[-1].op, answer.nodes[-1].node) == ("net", "whole net")
    assert [case.rung for case in answer.ladder.cases][-1] == "reference"
    assert all(info.source for info in answer.rungs)
    refused = {info.case.rung: info.refused for info in answer.rungs}
    assert "kernel = 3" in refused["winograd"]
    assert refused["im2col"] == ""


def test_a_fused_layer_s_heaviest_node_is_taken_and_a_device_that_cannot_run_is_replaced():
    answer = ask(nodes=("pool2", "conv2"), device="abacus", batch=4)
    assert (answer.ladder.job.node, answer.ladder.job.batch) == ("conv2", 4)
    assert answer.ladder.job.device in {info.name for info in answer.devices if not info.refused}


def test_the_rungs_of_a_device_that_is_not_here_can_be_read():
    answer = ask(device="cuda")
    if answer.ladder.job.device == "cuda":
        pytest.skip("there is a GPU here")
    assert {info.case.rung for info in answer.rungs} == {r.name for r in registry.rungs("cpu", "conv")}
    told = {info.case.rung: info for info in answer.to_read.rungs}
    assert list(told) == [rung.name for rung in registry.rungs("cuda", "conv")]
    assert "__global__" in told["naive"].source
    assert "conv_tensor.cuh" in [Path(path).name for path in told["tensor_tf32"].headers]
    assert "kernel = 3" in told["winograd_2x2_3x3"].refused
    assert answer.to_read.ladder.job.device == "cuda"
    assert ask().to_read is None


def test_files_that_are_no_rungs_are_told_and_the_others_join(tmp_path):
    body = "def bind(p, inputs, output, workspace):\n    return lambda: None\n"
    (tmp_path / "90_fine.py").write_text(HEADER.format(number=90, name="fine") + body)
    (tmp_path / "91_broken.py").write_text("# op = conv\n")
    (tmp_path / "90_twin.py").write_text(HEADER.format(number=90, name="twin") + body)
    answer = ask(kernel_dirs=(str(tmp_path), str(tmp_path / "gone")))
    assert [info.case.rung for info in answer.rungs if info.case.user] == ["fine"]
    reasons = {problem.path.rpartition("/")[2]: problem.reason for problem in answer.problems}
    assert "not valid TOML" in reasons["91_broken.py"]
    assert "already" in reasons["90_twin.py"]
    assert "does not exist" in reasons["gone"]
    assert "fine" in {case.rung for case in answer.ladder.cases}


def test_what_cannot_be_answered_is_a_sentence_and_what_cannot_be_read_ends_the_worker():
    wrong = ladder_describe.answer(LadderQuestion(number=1, model="lenet6-digits"))
    assert "lenet6-digits" in wrong.error
    assert wrong.ladder is None
    assert wrong.devices
    said = []
    lines = iter([b'{"number": 1, "model": "lenet5-digits"}\n', b"nonsense\n"])
    assert ladder_describe.serve(said.append, lambda: next(lines, b"")) == 2
    assert said[0].ladder is not None
    assert isinstance(said[1], Done)


def test_operators_that_share_a_step_have_a_ladder_each_and_one_together(tmp_path: Path) -> None:
    path = str(tmp_path / "small.onnx")
    onnx.save(small_net().whole_proto(), path)
    for op, node, nodes in [
        ("lrn", "norm1", ("norm1",)),
        ("pool", "0", ("pool1",)),
        ("lrn_pool", "0", ("norm1", "pool1")),
        ("lrn_pool", "pool1", ("norm1", "pool1")),
    ]:
        for device in ("cpu", "cuda"):
            step, _ = ladder_plan.node_of(path, op, node, 1, device)
            assert (step.op, step.nodes) == (op, nodes)
    with pytest.raises(InputError, match="it has conv, gemm, lrn, lrn_pool, net, pool, softmax"):
        ladder_plan.node_of(path, "cast", "0", 1, "cpu")
    told = {(node.op, node.node) for node in ask(model=path).nodes}
    assert {("lrn", "norm1"), ("pool", "pool1"), ("lrn_pool", "norm1")} <= told
    assert ask(model=path, node="norm1", op="lrn").ladder.job.op == "lrn"
    assert ask(model=path, nodes=("norm1", "pool1")).ladder.job.op == "lrn_pool"
    # What is measured together is climbed together, and what is measured apart, apart.
    for nodes, op in ((("conv1", "tanh1"), "conv"), (("conv1", "tanh1", "pool1"), "conv_pool")):
        assert ask(model="lenet5-digits", nodes=nodes).ladder.job.op == op
    step, _ = ladder_plan.node_of("lenet5-digits", "conv_pool", "conv1", 1, "cpu")
    assert step.nodes == ("conv1", "pool1", "tanh1")  # tanh is done behind the maximum


def test_a_model_without_the_operator_shows_what_there_is_most_to_compare_of():
    answer = ask(op="lrn")
    counts = {node.op: len(registry.rungs("cpu", node.op)) for node in answer.nodes if node.op in OPS}
    assert "lrn" not in counts
    assert counts[answer.ladder.job.op] == max(counts.values()) > 1


def test_tasks_stand_in_the_place_of_a_model(tmp_path):
    """Each in the sizes that it is timed on, the user's first; a folder that is none is told."""
    own = made(tmp_path / "turned", right="output[...] = (x * s[:, None]).T")
    broken = made(tmp_path / "broken", "title = 1")
    answer = ask(model=TASKS, op="turned", node="turned n 100, m 7", kernel_dirs=(str(own), str(broken)))
    names = [node.node for node in answer.nodes]
    assert names[:2] == ["turned n 40, m 30", "turned n 100, m 7"]
    assert {node.op for node in answer.nodes} == {"turned", *tasks.shipped()}
    job = answer.ladder.job
    assert (answer.error, job.model, job.op, job.title) == ("", "", "turned", "turned n 100, m 7")
    assert [(info.case.rung, info.whole, info.net) for info in answer.rungs] == [("right", True, False)]
    assert [case.rung for case in answer.ladder.cases] == ["right", "reference"]
    assert any("broken" in problem.path for problem in answer.problems)
    assert node_of(job) == "turned n 100, m 7"  # by which it is asked for again
    shipped = ask(model=TASKS, op="scan", device="cuda")
    assert shipped.ladder.job.op == "scan"
    told = shipped.to_read or shipped
    assert [info.case.rung for info in told.rungs] == ["one_block", "three_kernels", "look_back"]
    # Kernels that only a device takes that is not here are shown to be read; where there are none, the device
    # that was asked for is told, for which a template would be.
    (only,) = own.glob("*_right.py")
    only.unlink()
    only = only.with_suffix(".cu")
    only.write_text(CUDA)
    devices = (DeviceInfo(name="cpu"), DeviceInfo(name="cuda", refused="there is no GPU"))
    of_turned = {"model": TASKS, "op": "turned", "kernel_dirs": (str(own),), "devices": devices}
    to_read = ask(device="", **of_turned).to_read
    assert to_read is not None
    assert [info.case.rung for info in to_read.rungs] == ["right"]
    only.unlink()
    for device, named in (("", "cpu"), ("cpu", "cpu"), ("cuda", "cuda")):
        assert f"no kernel for {named} yet" in ask(device=device, **of_turned).error
