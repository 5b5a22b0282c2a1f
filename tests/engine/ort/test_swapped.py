"""A node of a model as an exported operator: in plain ONNX Runtime without this program, and as a backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import main
from engine import backends
from engine.backend import Options
from engine.backends import _swaps
from engine.graph import importer
from engine.ort import swapped as swapping
from engine.ort.swapped import swapped
from engine.planning.exported import named, replacement
from kernels import numba_support, registry
from kernels.cpu import load
from kernels.errors import InputError, KernelError, UnsupportedError
from kernels.exported import library, source, torch_module
from kernels.ops import sized
from kernels.ops.conv import Conv

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(numba_support.unavailable() is not None, reason="Numba is not here"),
]
RANDOM = np.random.default_rng(3)
W1, B1 = RANDOM.standard_normal((8, 3, 5, 5)).astype(np.float32), RANDOM.standard_normal(8).astype(np.float32)
W2 = RANDOM.standard_normal((6, 8, 3, 3)).astype(np.float32)
FIRST = sized(Conv(1, 3, 40, 40, 8, 5, 5, 0, 0, bias=True, activation="relu"))
# Plain ONNX Runtime: of all packages only these two can be found, and nothing of this program.
ALONE = """
import sys
sys.path[:] = [path for path in sys.path if "-packages" not in path and path] + [sys.argv[1]]
import numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 2
options.log_severity_level = 4
options.register_custom_ops_library(sys.argv[2])
session = ort.InferenceSession(sys.argv[3], options, providers=["CPUExecutionProvider"])
for n in (1, 16):
    np.save(f"y{n}.npy", session.run(None, {"x": np.load(f"x{n}.npy")})[0])
try:
    session.run(None, {"x": np.zeros((3, 3, 40, 40), np.float32)})
except Exception as error:
    print(error)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"kernels", "engine", "numba", "onnx"}))
"""


def model(kind: int = onnx.TensorProto.FLOAT, second: bool = True) -> onnx.ModelProto:
    """Conv → Relu → Conv, or its first half."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", kernel_shape=[5, 5]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], "conv2", kernel_shape=[3, 3]),
    ][: 3 if second else 2]
    output = ("c2", ["N", 6, 34, 34]) if second else ("r1", ["N", 8, 36, 36])
    weights = {"w1": W1, "b1": B1, "w2": W2}
    weights = weights if second else {name: weights[name] for name in ("w1", "b1")}
    graph = helper.make_graph(
        nodes,
        "two",
        [helper.make_tensor_value_info("x", kind, ["N", 3, 40, 40])],
        [helper.make_tensor_value_info(output[0], kind, output[1])],
        [numpy_helper.from_array(array.astype(dtype), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.sampled(6, "longest")
def test_without_this_program_it_answers_as_the_rung(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(model(second=False), tmp_path / "net.onnx")
    rung = registry.find("cpu", "conv", "register_tiles")
    text = rung.source.replace("# rung = 8\n", "# rung = 90\n").replace('"register_tiles"\n', '"mine"\n', 1)
    (tmp_path / "90_mine.py").write_text(text)
    out = tmp_path / "out"
    asked = [str(tmp_path / "90_mine.py"), "--node", "conv1", "--model", str(tmp_path / "net.onnx")]
    assert main.main(["export-op", *asked, "--batch", "1,16", "--out", str(out)]) == 0
    made = capsys.readouterr().out.split()
    before = (tmp_path / "net.onnx").read_bytes()
    assert main.main(["export-op", *asked, "--out", str(tmp_path)]) == 2
    assert "is the model itself" in capsys.readouterr().err
    assert (tmp_path / "net.onnx").read_bytes() == before
    assert made == [str(out / name) for name in ("mine_conv1.c", "libmine_conv1.so", "net.onnx", "README.md")]
    page = (out / "README.md").read_text()
    assert "does the work" not in page
    assert "in the place of conv1 and relu1" in page
    assert "threads of ONNX Runtime's session" in page
    with monkeypatch.context() as patch:
        patch.chdir(out)
        exec(page.partition("```python\n")[2].partition("```")[0], {})
    assert capsys.readouterr().out.startswith("(1, ")
    inputs = {n: RANDOM.standard_normal((n, 3, 40, 40)).astype(np.float32) for n in (1, 16)}
    for n, x in inputs.items():
        np.save(tmp_path / f"x{n}.npy", x)
    packages = tmp_path / "packages"
    packages.mkdir()
    site = Path(onnxruntime.__file__).parents[1]
    for name in ("onnxruntime", "numpy", "numpy.libs"):
        if (site / name).exists():
            (packages / name).symlink_to(site / name)
    command = [sys.executable, "-S", "-c", ALONE, str(packages), made[1], made[2]]
    around = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said, modules = done.stdout.splitlines()
    assert "exported for an input of 1x3x40x40, 16x3x40x40 and was given 3x3x40x40; export it for" in said
    assert modules == "[]"
    kernel = load(rung)
    for n, x in inputs.items():
        p = sized(Conv(**{**FIRST.__dict__, "n": n}))
        given = [x, *kernel.pack(p, [None, W1, B1])[1:]]
        expected = np.zeros(p.output_shape, np.float32)
        kernel.bind(p, given, expected, np.zeros(kernel.workspace(p) // 4, np.float32))()
        assert np.load(tmp_path / f"y{n}.npy").tobytes() == expected.tobytes()


@pytest.mark.sampled(4, "long")
def test_several_kernels_in_one_model_as_a_backend() -> None:
    graph = importer.from_proto(model())
    x = RANDOM.standard_normal((4, 3, 40, 40)).astype(np.float32)
    answers, facts = [], []
    for name, rungs in (
        ("ort-cpu", {}),
        ("ort-cpu-swapped", dict.fromkeys(("conv1", "conv2"), "register_tiles")),
    ):
        session = backends.get(name).prepare(graph, 4, options=Options(rungs=rungs, threads=1))
        session.bind({"x": x})
        session.run()
        answers.append(session.fetch()["c2"])
        facts.append(session.facts)
        session.close()
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-4, atol=1e-4)
    assert facts[1]["swapped"] == "conv1 + relu1 by conv 08 register_tiles, conv2 by conv 08 register_tiles"
    # The kernels are there: without the library the model does not load.
    rung = named(graph, "conv2", "8", "cpu", (), 4)
    made = swapped(graph, [replacement(graph, "conv2", rung, (4,))])
    with pytest.raises(Exception, match="register_tiles_conv2"):
        onnxruntime.InferenceSession(
            made.whole_proto().SerializeToString(), providers=["CPUExecutionProvider"]
        )
    assert [node.name for node in made.proto.graph.node] == ["conv1", "relu1", "conv2"]


@pytest.mark.sampled(4, "long")
def test_libraries_of_one_model_stay_however_few_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_swaps, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(_swaps, "MOST_BUILT", 1)
    graph = importer.from_proto(model())

    def built(*nodes: str) -> list[_swaps.Built]:
        return _swaps.built(graph, 1, Options(rungs=dict.fromkeys(nodes, "register_tiles")), "cpu")

    assert all(Path(it.library).is_file() for it in built("conv1", "conv2"))
    assert [it.folder for it in built("conv2")] == list((tmp_path / "exported").iterdir())

    def fails(*_: object) -> None:
        raise KernelError("no space")

    with pytest.raises(KernelError):
        _swaps.built(graph, 1, Options(rungs={"conv1": "register_tiles"}), "cpu", fails)
    assert len(list((tmp_path / "exported").iterdir())) == 1, "nothing half built is left"


def test_a_large_model_is_written_twice_and_its_weights_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swapping, "LARGEST_NBYTES", 10)
    graph, sizes = importer.from_proto(model()), []
    for _ in range(2):
        swapping.save(graph, tmp_path / "net.onnx")
        sizes.append((tmp_path / "net.onnx.data").stat().st_size)
    assert sizes[0] == sizes[1]


def test_names_of_a_file_are_no_code(tmp_path: Path) -> None:
    proto = model(second=False)
    proto.graph.node[0].name = 'conv */ int planted(void); /* "%n {x}' * 9
    graph = importer.from_proto(proto)
    rung = registry.find("cpu", "conv", "register_tiles")
    made = replacement(graph, graph.nodes[0].name, rung, (1,)).operator
    made = replace(made, name="mine")
    compile(torch_module.text(made), "mine.py", "exec")
    assert "planted(void)" not in source.text(made)
    library.written(made, tmp_path)


@pytest.mark.parametrize(
    ("node", "kind", "batches", "error", "told"),
    [
        ("conv3", onnx.TensorProto.FLOAT, (1,), InputError, r"has no node 'conv3' \(did you mean 'conv[12]'"),
        ("conv1", onnx.TensorProto.FLOAT16, (1,), UnsupportedError, "float16"),
    ],
)
def test_what_cannot_take_its_place_is_refused(
    node: str, kind: int, batches: tuple[int, ...], error: type[Exception], told: str
) -> None:
    graph = importer.from_proto(model(kind))
    with pytest.raises(error, match=told):
        replacement(graph, node, registry.find("cpu", "conv", "register_tiles"), batches)


def test_open_axes_and_other_operators_are_refused() -> None:
    rung = registry.find("cpu", "gemm", "register_tiles")
    with pytest.raises(
        InputError, match="node conv1 of model two is computed by kernels of conv, and gemm 02"
    ):
        replacement(importer.from_proto(model()), "conv1", rung, (1,))
    proto = model()
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "H"
    conv = registry.find("cpu", "conv", "register_tiles")
    with pytest.raises(UnsupportedError, match=r"leaves axis 2 open beside its batch.*give that axis a size"):
        replacement(importer.from_proto(proto), "conv1", conv, (1,))
    proto = model()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    with pytest.raises(InputError, match="has its batch fixed at 2; leave the batch sizes away"):
        replacement(importer.from_proto(proto), "conv1", conv, (1,))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--swap", "conv9=register_tiles"), "has no node 'conv9'"),
        (("--swap", "conv1=no_such"), "no_such"),
        (("--swap", "conv1=register_tiles", "--backend", "engine-cpu"), "none of them is compared"),
        (("--backend", "ort-cpu-swapped"), "name one by --swap NODE=RUNG"),
    ],
)
def test_compare_says_what_is_wrong_with_a_swap(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments if "--backend" in arguments else (*arguments, "--backend", "ort-cpu")
    assert main.main(["compare", "lenet5-digits", *given]) == 2
    assert told in capsys.readouterr().err


LATER = """# op = "conv"
# rung = 90
# name = "mine"
# idea = "Of a test: some passes long it is right."
# compiled = true
import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled


def workspace(p):
    return 64


@compiled
def step(a, low, high, scratch):
    c, h, w, m, k = a[1], a[2], a[3], a[4], a[5]
    x, weight, bias, y = simd.floats(a[6]), simd.floats(a[7]), simd.floats(a[8]), simd.floats(a[9])
    if not (0 < scratch[0] < 1e9):
        scratch[0] = 1
    scratch[0] += 1
    if scratch[0] > 10:
        return
    out_h, out_w = h - k + 1, w - k + 1
    if a[0] == 1:
        low, high = low * m, high * m
    for part in range(low, high):
        for place in range(out_h * out_w):
            i, j, total = place // out_w, place % out_w, bias[part % m]
            for r in range(c * k * k):
                at = ((part // m * c + r // (k * k)) * h + i + r // k % k) * w + j + r % k
                total += weight[part % m * c * k * k + r] * x[at]
            y[part * out_h * out_w + place] = total


def bind(p, inputs, output, workspace):
    sizes = [p.c, p.h, p.w, p.m, p.kh]
    return Call(step, [*sizes, *inputs, output], workspace, images=p.n, parts=p.n * p.m)
"""


@pytest.mark.sampled(6, "longest")
@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_wrong_kernel_is_told_beside_the_reference(
    when: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one that computes nothing after some passes, which the optimiser has no part in."""
    node, text = "conv2", LATER
    if when == "at once":
        node, text = "conv1", registry.find("cpu", "conv", "register_tiles").source
        right = "inputs[2] if p.bias else np.zeros"
        assert right in text
        text = text.replace(right, "np.zeros(p.m, np.float32) if p.bias else np.zeros")
        text = text.replace("# rung = 8\n", "# rung = 90\n").replace('"register_tiles"\n', '"mine"\n', 1)
    (tmp_path / "90_mine.py").write_text(text)
    asked = ["lenet5-digits", "--backend", "ort-cpu", "--batch", "4", "--images", "8", "--budget", "0.05"]
    asked += ["--kernels", str(tmp_path), "--swap", f"{node}=mine", "--charts", "none"]
    assert main.main(["compare", *asked, "--out", str(tmp_path / "run")]) == 1
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    found = {line["case"]["backend"]: line.get("disposition", "ok") for line in lines}
    assert found == {"ort-cpu": "ok", "ort-cpu-swapped": "incorrect"}
    (reason,) = [line["reason"] for line in lines if line["case"]["backend"] == "ort-cpu-swapped"]
    assert reason.startswith("before timing") == (when == "at once")
    assert "optimisation" not in reason
    said = capsys.readouterr().out
    assert "ort-cpu-swapped is wrong at batch 4" in said
