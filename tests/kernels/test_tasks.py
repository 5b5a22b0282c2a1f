"""Tasks: a folder is what an operator is."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from bench import judge
from bench.commands import ladder_watch
from bench.measure.answers import of_tasks, one_node, oracle, samples
from bench.measure.answers.comparison import compare
from bench.questions import ladder_plan
from bench.questions import rung_template as template
from bench.run.watching import of_a_task, stamps
from kernels import arguments, expressions, launch, registry, tasks
from kernels.errors import InputError, KernelError
from kernels.tasks import TaskParams, reference, spec
from tests.tasks import yardsticks

SCALE = """
title = "Scaled and turned"
operations = "n * m"
require = ["n <= 4096"]
check = [{n = 1, m = 1}, {n = 3, m = 5}, {n = 33, m = 17}]
time = [{n = 40, m = 30}, {n = 100, m = 7}]
[sizes]
n = "rows"
m = "columns"
[[input]]
name = "x"
shape = ["n", "m"]
[[input]]
name = "s"
shape = ["n"]
[[output]]
name = "y"
shape = ["m", "n"]
"""
REFERENCE = "def reference(x, s):\n    return (x * s[:, None]).T\n"
KERNEL = """# op = "{op}"
# rung = {number}
# name = "{name}"
# idea = "A test."
import numpy as np


def bind(p, inputs, output, workspace):
    x, s = (array.reshape(shape) for array, shape in zip(inputs, p.input_shapes))

    def run():
        {body}

    return run
"""


def made(folder: Path, text: str = SCALE, answer: str = REFERENCE, **kernels: str) -> Path:
    """A task's folder with CPU kernels of these bodies."""
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(text)
    (folder / "reference.py").write_text(answer)
    for number, (name, body) in enumerate(kernels.items(), 1):
        rung = KERNEL.format(op=folder.name, number=number, name=name, body=body)
        (folder / f"{number:02d}_{name}.py").write_text(rung)
    return folder


def save_model(file: Path) -> None:
    """REFERENCE as an ONNX model."""
    nodes = [helper.make_node("Unsqueeze", ["s", "axis"], ["column"])]
    nodes += [
        helper.make_node("Mul", ["x", "column"], ["wide"]),
        helper.make_node("Transpose", ["wide"], ["y"]),
    ]
    told = [
        helper.make_tensor_value_info(name, 1, [None] * rank) for name, rank in (("x", 2), ("s", 1), ("y", 2))
    ]
    axis = numpy_helper.from_array(np.array([1]), "axis")
    graph = helper.make_graph(nodes, "g", told[:2], told[2:], [axis])
    opset = helper.make_opsetid("", 20)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), file)


def judged(folder: Path, name: str) -> str:
    """The fault and the words for a kernel of a folder; "" where it is right."""
    record = tasks.find(folder)
    rung = registry.find("cpu", record.op, name, [folder])
    try:
        judge.examine(rung, record(**record.task.spec.time[0])).close()
    except judge.Wrong as wrong:
        return f"{wrong.finding.fault}: {wrong.finding.reason}"
    return ""


def test_expressions_are_worked_out_and_nothing_else_is() -> None:
    names = {"n": 1000, "BLOCK": 256}
    told = {"4 * ceil(n, BLOCK)": 16, "min(n, 7) - -1": 8, "n % 3 == 1": 1, "log2(n)": 10, "sqrt(n) // 2": 15}
    assert {text: expressions.value(text, names) for text in told} == told
    broken = ["n / 2", "m", "n ** 9", "__import__('os')", "n.real", "ceil(n)", "n // 0", "(" * 99]
    broken += ["log2(0)", "'a'", "1.5", "n if n else 1", "n < n < n", "4611686018427387904 * 2"]
    for text in (*broken, "n*" * 99 + "n"):
        with pytest.raises(expressions.ExpressionError):
            expressions.value(text, names)


def test_a_folder_is_what_an_operator_is(tmp_path: Path) -> None:
    folder = made(tmp_path / "turned", right="output[...] = (x * s[:, None]).T")
    record = tasks.find(folder)
    p = record(n=3, m=5)
    assert (p.op, p.input_shapes, p.output_shape, p.flops) == ("turned", ((3, 5), (3,)), (5, 3), 15)
    assert (p.nbytes, p.words, str(arguments.parameter(record))) == (
        132,
        "turned n 3, m 5",
        "const TurnedParams p",
    )
    assert pickle.loads(pickle.dumps(p)) == p
    assert tasks.record_of("turned") is record  # known by its name from here on
    assert [rung.label for rung in registry.rungs("cpu", "turned", [folder])] == ["turned 01 right"]
    assert registry.rungs("cuda", "turned", [folder]) == ()
    sample = samples.draw(p, np.random.default_rng(0))
    x, s = (array.astype(np.float64) for array in sample.inputs)
    np.testing.assert_array_equal(sample.expected, (x * s[:, None]).T)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[sizes]", "[size]"), "unknown field `size`"),
        (('shape = ["m", "n"]', 'shape = ["m", "k"]'), "names 'k'"),
        (('shape = ["m", "n"]', 'shape = ["m // 2", "n"]'), "would have an axis of 0"),
        (("n = 33, m = 17", "n = 33"), "m is not said"),
        (("n = 33, m = 17", "n = 33000, m = 17"), "n <= 4096 does not hold"),
        (("n = 33, m = 17", "n = 4000, m = 4000"), "too many to be tried"),
        (('name = "s"', 'name = "m"'), "named twice"),
        (('name = "s"', 'name = "float"'), "such as my_"),
        (('name = "s"', 'name = "s"\ntype = "complex"'), "is none of float32"),
        (('name = "s"', 'name = "s"\ndraw = {kind = "offsets"}'), "draws whole numbers"),
        (('name = "y"', 'name = "y"\ncompare = "near"'), "is unknown"),
        (("[[output]]", "[[output]]\nname = 'z'\ncompare = 'set'\nshape = [1]\n[[output]]"), "there is one"),
        (('title = "Scaled and turned"', 'title = "a"\nreference = "../x.py"'), "names a .py or .onnx file"),
        (("title", "yardstick = 'add.py'\ntitle"), "yardstick names an .onnx file"),
        (("operations", "operations = 1\nstory"), "Expected `str`"),
    ],
)
def test_what_is_wrong_with_a_task_is_said(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    text = SCALE.replace(*change)
    if change[0] == "operations":
        text = SCALE.replace('operations = "n * m"', "operations = 1\nstory = 2")
    assert text != SCALE
    with pytest.raises(InputError) as error:
        spec.parsed("turned", tmp_path, text)
    assert said in str(error.value)


def test_names_that_a_task_cannot_have(tmp_path: Path) -> None:
    for name in ("conv", "net", "for", "Upper", "1st", "a-b", "int"):
        with pytest.raises(InputError):
            spec.parsed(name, tmp_path, SCALE)
    with pytest.raises(InputError, match="ladder's own"):
        tasks.find(made(tmp_path / "vector_add"))
    with pytest.raises(InputError, match="did you mean 'vector_add'"):
        tasks.find("vectoradd")


WRONG = {
    "sign": ("output[...] = (-x * s[:, None]).T", "sign: the sign of x is reversed"),
    "lost_sign": ("output[...] = (x * np.abs(s)[:, None]).T", "sign: the sign of s is lost"),
    "order": ("output[...] = (x[::-1] * s[:, None]).T[:]", "layout|place"),
    "columns": ("output[...] = (x * s[:, None]).reshape(output.shape)", "layout: the answer is laid out by"),
    "edge": (
        "output[...] = (x * np.where(np.arange(p.n) < p.n - 1, s, 0)[:, None]).T",
        "the last element of s",
    ),
    "whole": ("output[...] = (np.trunc(x) * s[:, None]).T", "kind: x is cut to whole numbers"),
    "first": ("output[...] = (x * s[0]).T", "stride: all elements of s are read as the first one"),
    "left": ("output[:-1] = (x * s[:, None]).T[:-1]", "unwritten"),
    "input": ("np.multiply(x, s[:, None], x); output[...] = x.T", "input_written"),
    "half": ("output[...] = (x * s[:, None]).T.astype(np.float16)", "half_precision"),
    "twice": ("output[...] = 2 * (x * s[:, None]).T", "scale: every element is 2 times"),
}


@pytest.mark.sampled(4, "long")
def test_findings_that_know_no_operator(tmp_path: Path) -> None:
    """Each planted mistake is found, and told by what was done."""
    folder = made(
        tmp_path / "turned", right="output[...] = (x * s[:, None]).T", **{k: v[0] for k, v in WRONG.items()}
    )
    assert judged(folder, "right") == ""
    for name, (_, words) in WRONG.items():
        told = judged(folder, name)
        assert any(part in told for part in words.split("|")), (name, told)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def other(x):\n    return x\n", "defines no reference"),
        ("def reference(q):\n    return q\n", "has a parameter 'q'"),
        ("def reference(x, s):\n    return x\n", "answers the shape"),
        ("def reference(x, s):\n    return x.T.astype(complex)\n", "is no array of numbers"),
        ("def reference(x, s):\n    return 1 / 0\n", "line 2: ZeroDivisionError"),
        ("def reference(x, s)\n", "line 1"),
        ("import os\ndef reference(x, s):\n    os._exit(3)\n", "ended without an answer"),
        ("import os\nos.write(1, b'x' * 99); os.close(1)\ndef reference(x, s):\n    return x.T\n", ""),
    ],
)
def test_a_reference_that_has_no_answer_is_told_in_a_sentence(tmp_path: Path, body: str, said: str) -> None:
    p = tasks.find(made(tmp_path / "turned", answer=body))(n=3, m=5)
    inputs = one_node.draw(p, np.random.default_rng(0))
    if not said:  # what it prints goes nowhere
        assert reference.answer(p, inputs).shape == (5, 3)
        return
    with pytest.raises(reference.NoAnswerError) as error:
        reference.answer(p, inputs)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_answer_that_no_kernel_can_be_held_against_is_told(tmp_path: Path) -> None:
    """Else zeros would be right beside NaN, and nothing beside what a type does not hold."""
    body = "import numpy as np\n\n\ndef reference(x):\n    return np.sqrt(x.T - 99)\n"
    p = tasks.find(made(tmp_path / "rooted", answer=body))(n=3, m=5)
    inputs = one_node.draw(p, np.random.default_rng(0))
    with pytest.raises(reference.NoAnswerError, match=r"answers nan for an element of y .* draw inputs"):
        one_node.answer(p, inputs)
    for value in (np.nan, np.inf):
        sample = samples.Sample(p, inputs, np.full(p.output_shape, value))
        assert not compare(np.zeros(p.output_shape, np.float32), sample, "fp32").stats.ok
    for kind, answer in (("uint8", "(x.T * 0).astype(int) + 256"), ("float16", "x.T * 0 + 1e5")):
        text = SCALE.replace('name = "y"', f'name = "y"\ntype = "{kind}"')
        body = f"def reference(x):\n    return {answer}\n"
        p = tasks.find(made(tmp_path / f"narrow_{kind}", text, body))(n=3, m=5)
        with pytest.raises(reference.NoAnswerError, match=rf"answers (256|100000) .* {kind} does not hold"):
            one_node.answer(p, one_node.draw(p, np.random.default_rng(0)))
    body = "import numpy as np\n\n\ndef reference(x):\n    return x.T + np.random.rand(*x.T.shape)\n"
    p = tasks.find(made(tmp_path / "dice", answer=body))(n=3, m=5)
    with pytest.raises(reference.NoAnswerError, match="another answer each time"):
        one_node.answer(p, one_node.draw(p, np.random.default_rng(0)))
    # As a library with threads rounds a sum.
    body = "calls = [0]\n\n\ndef reference(x):\n    calls[0] += 1\n    return x.T * (1 + 1e-15 * calls[0])\n"
    p = tasks.find(made(tmp_path / "rounded", answer=body))(n=3, m=5)
    one_node.answer(p, one_node.draw(p, np.random.default_rng(0)))


@pytest.mark.parametrize(("other", "most"), [("int32", 1 << 60), ("float32", (1 << 53) - 1)])
def test_large_whole_numbers_beside_another_type_are_compared_exactly(
    tmp_path: Path, other: str, most: int
) -> None:
    second = f'[[output]]\nname = "z"\nshape = ["n"]\ntype = "{other}"\n'
    text = SCALE.replace('name = "y"', 'name = "y"\ntype = "int64"') + second
    body = "import numpy as np\n\n\ndef reference(m, n):\n    return np.full((m, n), {}), np.arange(n)\n"
    p = tasks.find(made(tmp_path / "wide", text, body.format(most)))(n=3, m=5)
    inputs = one_node.draw(p, np.random.default_rng(0))
    sample = samples.Sample(p, inputs, one_node.answer(p, inputs))
    for off in (0, 1):
        parts = np.full((5, 3), most + off, np.int64), np.arange(3).astype(other)
        got = np.zeros(math.prod(p.output_shape), p.out_dtype)
        for own, part in zip(p.split(got), parts, strict=True):
            own[...] = part
        assert compare(got, sample, "fp32").stats.ok == (off == 0)
    if other == "float32":  # its neighbour would be the same in float64
        p = tasks.find(made(tmp_path / "wider", text, body.format(most + 1)))(n=3, m=5)
        with pytest.raises(reference.NoAnswerError, match="beside numbers with a point"):
            one_node.answer(p, inputs)


@pytest.mark.sampled(4, "long")
def test_a_reference_is_given_up_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "trace"
    body = f"def reference(x, s):\n    open({str(trace)!r}, 'w').write('here')\n    return x.T\n"
    p = tasks.find(made(tmp_path / "turned", answer=body))(n=3, m=5)
    inputs = one_node.draw(p, np.random.default_rng(0))
    with pytest.raises(reference.NoAnswerError, match="PermissionError"):
        reference.answer(p, inputs)
    assert not trace.exists()
    (tmp_path / "turned" / "reference.py").write_text("def reference(x, s):\n    while True: pass\n")
    p = tasks.find(tmp_path / "turned")(n=3, m=5)
    monkeypatch.setenv(reference.SECONDS_VARIABLE, "1.5")
    with pytest.raises(reference.NoAnswerError, match="given up"):
        reference.answer(p, inputs)
    (tmp_path / "turned" / "reference.py").write_text(REFERENCE)
    p = tasks.find(tmp_path / "turned")(n=3, m=5)  # read anew
    assert reference.answer(p, inputs).shape == (5, 3)


@pytest.mark.sampled(4, "long")
def test_whole_numbers_are_exact_and_open_orders_are_compared_in_one(tmp_path: Path) -> None:
    text = SCALE.replace('name = "y"', 'name = "y"\ntype = "int32"').replace(
        'name = "s"\nshape = ["n"]',
        'name = "s"\ntype = "int32"\nshape = ["n"]\ndraw = {kind = "integers", high = 99}',
    )
    exact = tasks.find(
        made(tmp_path / "exact", text, "def reference(x, s, m):\n    return s[None] + x.T.astype(int) * 0\n")
    )
    p = exact(n=3, m=5)
    sample = samples.draw(p, np.random.default_rng(0))
    right = sample.expected.astype(np.int32)
    assert compare(right, sample, "fp32").stats.ok
    right[2, 1] += 1
    assert not compare(right, sample, "fp32").stats.ok
    # Large ones, too, which float64 does not tell from their neighbours.
    large = replace(sample, expected=sample.expected + (1 << 60))
    near = large.expected.copy()
    assert compare(near, large, "fp32").stats.ok
    near[2, 1] += 1
    found = compare(near, large, "fp32")
    assert (found.stats.ok, found.wrong, found.index) == (False, 1, (2, 1))
    assert found.got != found.expected
    for how in ("sorted", "set"):
        open_text = SCALE.replace('name = "y"', f'name = "y"\ncompare = "{how}"')
        record = tasks.find(made(tmp_path / f"open_{how}", open_text))
        p = record(n=33, m=17)
        sample = samples.draw(p, np.random.default_rng(0))
        answer = sample.expected.astype(np.float32)
        other = np.sort(answer, axis=1)[:, ::-1] if how == "sorted" else answer[::-1]
        assert compare(np.ascontiguousarray(other), sample, "fp32").stats.ok
        assert not compare(answer * np.float32(1.01), sample, "fp32").stats.ok
        crossed = np.ascontiguousarray(answer.T.reshape(answer.shape))  # values in the rows of others
        assert not compare(crossed, sample, "fp32").stats.ok
        near = 1e-4
        assert not of_tasks.strangers(p, answer[:3].reshape(-1), sample.expected, near).any()
        assert of_tasks.strangers(p, answer[:3].reshape(-1) + np.float32(0.5), sample.expected, near).any()


def test_a_model_is_a_reference_too(tmp_path: Path) -> None:
    """An ONNX file with names of its own, and an axis left open: it answers, and is what a backend runs."""
    folder = made(tmp_path / "turned", SCALE.replace("operations", 'reference = "net.onnx"\noperations', 1))
    made_by = [
        helper.make_node("Unsqueeze", ["factors", "one"], ["y"]),
        helper.make_node("Mul", ["in0", "y"], ["z"]),
        helper.make_node("Transpose", ["z"], ["answer"], perm=[1, 0]),
    ]
    given = [
        helper.make_tensor_value_info(name, 1, shape) for name, shape in (("in0", "ab"), ("factors", "a"))
    ]
    last = helper.make_tensor_value_info("answer", 1, "ba")
    one = numpy_helper.from_array(np.array([1]), "one")
    opset = [helper.make_opsetid("", 20)]
    proto = helper.make_model(
        helper.make_graph(made_by, "net", given, [last], [one]), opset_imports=opset, ir_version=9
    )
    onnx.save(proto, str(folder / "net.onnx"))
    p = tasks.find(folder)(n=3, m=5)
    inputs = one_node.draw(p, np.random.default_rng(0))
    x, s = (array.astype(np.float64) for array in inputs)
    np.testing.assert_array_equal(one_node.answer(p, inputs), (x * s[:, None]).T)
    assert one_node.is_graph(p)
    assert [info.shape for info in one_node.graph(p, inputs).inputs] == [(3, 5), (3,)]
    (folder / "net.onnx").write_bytes(b"no model")
    p = tasks.find(folder)(n=3, m=5)
    with pytest.raises(InputError, match="is no ONNX model"):
        one_node.answer(p, inputs)


EDGES = """
title = "The largest and the smallest of each row"
check = [{m = 1, n = 1}, {m = 3, n = 7}, {m = 33, n = 5}]
time = [{m = 40, n = 30}]
[sizes]
m = "rows"
n = "elements of a row"
[[input]]
name = "x"
shape = ["m", "n"]
[[output]]
name = "most"
shape = ["m"]
[[output]]
name = "least"
shape = ["m", 1]
"""


PLACE = """
title = "The place of the largest of each row"
check = [{m = 3, n = 7}, {m = 5, n = 33}]
time = [{m = 7, n = 40}]
[sizes]
m = "rows"
n = "elements of a row"
[[input]]
name = "x"
shape = ["m", "n"]
draw = {kind = "integers", low = -3, high = 4}
[[input]]
name = "s"
shape = ["m"]
[[output]]
name = "y"
type = "int32"
shape = ["m"]
"""


def test_numbers_are_also_drawn_from_one_half_of_their_range(tmp_path: Path) -> None:
    """So a kernel that looks for the largest and begins with 0 is found. Whole numbers are told whole."""
    folder = made(
        tmp_path / "largest",
        PLACE,
        "def reference(x):\n    return x.argmax(1) + 1000000\n",
        right="output[...] = x.argmax(1) + 1000000",
        begins_at_zero="output[...] = np.where(x.max(1) > 0, x.argmax(1), 0) + 1000000",
    )
    assert judged(folder, "right") == ""
    said = judged(folder, "begins_at_zero")
    assert "right where numbers are from all of their range, wrong where all are from its lower half" in said
    assert "1000000 instead of 10000" in said
    assert "relative L2" not in said
    p = tasks.find(folder)(m=40, n=50)
    for half, ends, signs in (("lower", (-3, -1), {-1}), ("upper", (0, 3), {1}), ("", (-3, 3), {-1, 1})):
        x, s = of_tasks.drawn(p, np.random.default_rng(0), half)
        assert (x.min(), x.max(), {*np.sign(s)}) == (*ends, signs)


EDGES_KERNEL = """
def bind(p, inputs, output, workspace):
    x, (most, least) = inputs[0].reshape(p.m, p.n), p.split(output)

    def run():
        most[...] = x.{first}(1)
        least[...] = x.{second}(1, keepdims=True)

    return run
"""


def test_what_a_task_is_timed_beside(tmp_path: Path) -> None:
    folder = made(tmp_path / "scaled", right="output[...] = (x * s[:, None]).T")
    record = tasks.find(folder)
    p = record(**record.task.spec.time[0])
    job = ladder_plan.job_of(p, "cpu", kernel_dirs=(str(folder),))
    planned = ladder_plan.plan(job)
    assert planned.reference == "the reference (NumPy)"
    assert [case.scope for case in planned.cases] == ["rung", "reference"]
    of_gpu = ladder_plan.plan(msgspec.structs.replace(job, device="cuda"))
    assert (of_gpu.reference, of_gpu.cases) == ("", ())  # a function in NumPy is no rival of a GPU
    arrays = reference.given(p, one_node.draw(p, np.random.default_rng(0)))
    assert reference.time_ns(p, arrays, 2, threads=1) > 0
    ours = tasks.find("histogram")  # which ONNX does not have
    planned = ladder_plan.plan(ladder_plan.job_of(ours(**ours.task.spec.time[0]), "cuda"))
    assert (planned.reference, planned.cases[-1].scope) == ("CuPy", "reference")
    (folder / "task.toml").write_text("yardstick = 'net.onnx'" + SCALE)
    with pytest.raises(InputError, match=r"there is no net\.onnx beside it"):
        tasks.find(folder)
    save_model(folder / "net.onnx")
    tasks.find(folder)
    planned = ladder_plan.plan(job)
    assert planned.reference == "ONNX Runtime (CPU)"
    sample = samples.draw(ladder_plan.job_work(job), np.random.default_rng(0))
    found = one_node.graph(sample.params, sample.inputs)
    got = oracle.run(found, {f"in{i}": array for i, array in enumerate(sample.inputs)}, ["y"])["y"]
    assert compare(got, sample, "fp32").stats.ok


def test_a_watch_follows_the_files_of_a_task(tmp_path: Path) -> None:
    folder = made(tmp_path / "scaled", right="output[...] = (x * s[:, None]).T")
    record = tasks.find(folder)
    job = ladder_plan.job_of(record(**record.task.spec.time[0]), "cpu", kernel_dirs=(str(folder),))
    other = ladder_plan.job_of(record(n=7, m=5), "cpu", kernel_dirs=(str(folder),))
    following, beside = (ladder_watch.FollowedTask(each) for each in (job, other))
    seen = stamps([folder])
    kinds = {path.name: of_a_task(path) for path in seen}
    assert kinds == {"task.toml": True, "reference.py": True, "01_right.py": False}
    assert following.job(job) is job
    (folder / "task.toml").write_text(SCALE.replace("n = 40, m = 30", "n = 41, m = 31"))
    assert stamps([folder]) != seen
    assert following.job(job).params == {"n": 41, "m": 31}
    assert beside.job(other).params == {"n": 7, "m": 5}
    (folder / "reference.py").write_text(REFERENCE.replace("x * s", "2 * x * s"))
    now = following.job(job)
    assert now is not job
    assert following.job(now) is now
    (folder / "task.toml").write_text(SCALE.replace("[sizes]", "[size]"))
    with pytest.raises(InputError, match="unknown field"):
        following.job(now)


@pytest.mark.sampled(4, "long")
def test_several_outputs_lie_one_behind_the_other(tmp_path: Path) -> None:
    answers = "def reference(x):\n    return x.max(1), x.min(1, keepdims=True)\n"
    folder = made(tmp_path / "edges", EDGES, answers)
    head = KERNEL.partition("import numpy")[0]
    kernels = (("right", "max", "min"), ("swapped", "min", "max"), ("mean", "max", "mean"))
    for number, (name, first, second) in enumerate(kernels, 1):
        text = head.format(op="edges", number=number, name=name) + EDGES_KERNEL.format(
            first=first, second=second
        )
        (folder / f"0{number}_{name}.py").write_text(text)
    record = tasks.find(folder)
    p = record(m=3, n=7)
    assert (p.output_shapes, p.output_shape, p.output_offsets) == (((3,), (3, 1)), (6,), (0, 12))
    (folder / "01_first.cu").write_text(
        '/*\nop = "edges"\nrung = 1\nname = "first"\nidea = "b"\n[[launch]]\ngrid = 1\nblock = 1\n*/\n'
    )
    rung = registry.find("cuda", "edges", "first", [folder])
    how = launch.launch(p, rung)
    told = how.arguments([4096], 8192, 0, rung)
    assert [int(each) for each in told[:3]] == [4096, 8192, 8192 + 12]
    assert judged(folder, "right") == ""
    assert judged(folder, "swapped")
    assert "wrong only in least" in judged(folder, "mean")
    written = template.write("edges", "cpu", tmp_path / "mine")
    judge.examine(registry.find("cpu", "edges", "mine", [folder, tmp_path / "mine"]), p).close()
    assert written.name == "90_mine.py"
    (folder / "01_first.cu").unlink()
    frame = template.write("edges", "cuda", tmp_path / "mine").read_text()
    assert "float* __restrict__ most, float* __restrict__ least, const EdgesParams p" in frame
    (folder / "reference.py").write_text(answers.replace(", keepdims=True", ""))
    p = tasks.find(folder)(m=3, n=7)
    inputs = one_node.draw(p, np.random.default_rng(0))
    with pytest.raises(reference.NoAnswerError, match=r"answers \(3,\), \(3,\), and the task says"):
        one_node.answer(p, inputs)


RANKED = """
title = "The largest of a row, where it is, and whether it is above 0"
check = [{m = 1, n = 1}, {m = 5, n = 7}, {m = 33, n = 40}]
time = [{m = 64, n = 50}]
[sizes]
m = "rows"
n = "columns"
[[input]]
name = "x"
shape = ["m", "n"]
[[output]]
name = "above"
type = "uint8"
shape = ["m"]
[[output]]
name = "most"
shape = ["m"]
[[output]]
name = "place"
type = "int64"
shape = ["m", 1]
"""
RANKED_ANSWER = """import numpy as np
def reference(x):
    return (x.max(1) > 0).astype(np.uint8), x.max(1), x.argmax(1)[:, None]
"""
RANKED_BODY = """above, most, place = p.split(output)
        x = inputs[0].reshape(p.m, p.n)
        most[...] = x.max(1)
        above[...] = x.max(1) > 0
        place[...] = x.argmax(1)[:, None]
        """
RANKED_CUDA = """/*
op = "ranked"
rung = 1
name = "a_row"
idea = "A thread a row."
[[launch]]
grid = "ceil(m, 64)"
block = 64
*/
extern "C" __global__ void ranked(const float* x, unsigned char* above, float* most, long long* place,
                                  const RankedParams p) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= p.m) return;
    int best = 0;
    for (int i = 1; i < p.n; i++) if (x[row * p.n + i] > x[row * p.n + best]) best = i;
    most[row] = x[row * p.n + best];
    above[row] = most[row] > 0;
    place[row] = BEST;
}
"""


def test_outputs_of_several_types(tmp_path: Path) -> None:
    slips = {
        "right": "",
        "near": "most[...] *= np.float32(1 + 1e-7)",
        "off": "most[...] *= np.float32(1.001)",
        "one": "place[-1] += 1",
        "far": "place[-1] += 1 << 32",
        "bit": "above[0] ^= 1",
        "left": "place[...] = place",
        "by": "most[0] = np.nan",
    }
    folder = made(
        tmp_path / "ranked", RANKED, RANKED_ANSWER, **{name: RANKED_BODY + it for name, it in slips.items()}
    )
    unwritten = KERNEL.format(op="ranked", number=9, name="skips", body=RANKED_BODY)
    (folder / "09_skips.py").write_text(unwritten.replace("most[...] = x.max(1)", "most[1:] = x[1:].max(1)"))
    for file in folder.glob("0*.py"):
        file.write_text(file.read_text().replace("x, s = (array", "(x,) = (array"))
    p = tasks.find(folder)(m=5, n=7)
    assert (p.out_dtype, p.output_shape, p.output_offsets) == ("uint8", (5 * 13,), (60, 40, 0))
    told = {name: judged(folder, name) for name in (*slips, "skips")}
    assert (told["right"], told["near"], told["left"]) == ("", "", "")
    assert "relative L2 error" in told["off"]
    assert "most" in told["off"]
    assert "first place[32, 0]: " in told["one"]
    assert "first place[32, 0]: " in told["far"]
    assert "above[0]" in told["bit"]
    assert told["by"].startswith("nan: NaN at element most[0]")
    assert told["skips"].startswith("unwritten: ")
    assert "first most[0]" in told["skips"]
    sample = samples.draw(p, np.random.default_rng(0))
    buffer = np.zeros(p.output_shape, p.out_dtype)
    for own, right in zip(p.split(buffer), np.split(sample.expected, (5, 10)), strict=True):
        own[...] = right.reshape(own.shape)
    assert compare(buffer, sample, "fp32").stats.ok
    # A part of an element stands for what of the element can be known.
    places = np.arange(buffer.size)
    for number, _, values, right in of_tasks.seen_in_parts(p, places, buffer, buffer):
        assert number in (0, 1, 2)
        assert (values == right).all()
    changed = buffer.copy()
    p.split(changed)[1][...] = np.nextafter(p.split(buffer)[1], np.float32(9))
    for _, _, values, right in of_tasks.seen_in_parts(p, places, changed, buffer):
        assert np.allclose(values.astype(np.float64), right.astype(np.float64), rtol=1e-6)
    p.split(changed)[1][...] *= np.float32(1.5)
    seen = [it for it in of_tasks.seen_in_parts(p, places, changed, buffer) if it[0] == 1]
    assert not np.allclose(seen[0][2], seen[0][3], rtol=1e-3)
    (folder / "reference.py").write_text(RANKED_ANSWER.replace(".astype(np.uint8)", " + 0.5"))
    with pytest.raises(reference.NoAnswerError, match="answers float64 as its output 1, and the task says"):
        one_node.answer(tasks.find(folder)(m=5, n=7), one_node.draw(p, np.random.default_rng(0)))


@pytest.mark.parametrize(("best", "fault"), [("best", ""), ("best + (row == p.m - 1)", "place[")])
def test_a_cuda_kernel_has_outputs_of_several_types(tmp_path: Path, best: str, fault: str) -> None:
    folder = made(tmp_path / "ranked", RANKED, RANKED_ANSWER)
    (folder / "01_a_row.cu").write_text(RANKED_CUDA.replace("BEST", best))
    record = tasks.find(folder)
    rung = registry.find("cuda", "ranked", "a_row", [folder])
    trial = judge.Trial(rung, record(m=33, n=40), simulated=True)
    with trial:
        failure = trial.check("before timing")
    assert (failure is None) if not fault else (failure is not None and fault in failure.finding.reason)


def test_rows_of_a_set_that_rounding_parts_find_each_other(tmp_path: Path) -> None:
    text = SCALE.replace('name = "y"', 'name = "y"\ncompare = "set"')
    p = tasks.find(made(tmp_path / "row_set", text))(n=33, m=17)
    sample = samples.draw(p, np.random.default_rng(0))
    random = np.random.default_rng(1)
    # Columns that are alike but for their rounding: by value, chance would order the rows.
    right = random.standard_normal((400, 5))
    right[:, :2] = random.integers(0, 3, (400, 2))
    rounded = right * (1 + 1e-7 * random.standard_normal(right.shape))
    given = replace(sample, expected=right)
    shuffled = rounded[random.permutation(400)]
    assert compare(shuffled, given, "fp32").stats.ok
    for spoil in ("one element", "a row twice", "columns of others"):
        wrong = shuffled.copy()
        if spoil == "one element":
            wrong[7, 4] += 0.01
        elif spoil == "a row twice":
            wrong[7] = wrong[8]
        else:
            wrong[:, 4] = np.roll(wrong[:, 4], 1)
        assert not compare(wrong, given, "fp32").stats.ok, spoil


def test_what_is_drawn_is_valid() -> None:
    random = np.random.default_rng(1)
    for rows, total in ((1, 0), (1, 9), (2, 1), (40, 300)):
        offsets = of_tasks._offsets(rows + 1, total, random)
        assert len(offsets) == rows + 1
        assert (offsets[0], offsets[-1]) == (0, total)
        assert (np.diff(offsets) >= 0).all()
    lengths = np.diff(of_tasks._offsets(401, 5000, random))
    assert (lengths == 0).any()
    assert lengths.max() > 3 * lengths.mean()


@pytest.mark.parametrize("name", tasks.shipped())
def test_shipped_tasks_are_whole(name: str) -> None:
    """Its file, its drawing, its reference and the launches of its kernels, on every size that it names."""
    record = tasks.record_of(name)
    assert issubclass(record, TaskParams)
    told = record.task.spec
    assert len(told.story) > 100
    ladders = [rung for device in ("cuda", "cpu") for rung in registry.rungs(device, name)]
    assert 2 <= sum(rung.device == "cuda" for rung in ladders) <= 5
    for sizes in told.check:
        p = record(**sizes)
        sample = samples.draw(p, np.random.default_rng(0))
        assert sample.expected.shape == p.output_shape
        assert np.isfinite(sample.expected).all()
    if record.task.model:
        made = yardsticks.model(name)
        assert yardsticks.path(name).read_bytes() == made.SerializeToString(), "python -m tests.tasks --write"
        p = record(**told.check[-1])
        sample = samples.draw(p, np.random.default_rng(0))
        graph = one_node.graph(p, sample.inputs)
        data = {f"in{i}": array for i, array in enumerate(sample.inputs)}
        assert np.allclose(oracle.run(graph, data, ["y"])["y"], sample.expected, rtol=1e-6)
    for sizes in (*told.check, *told.time):
        p = record(**sizes)
        for rung in ladders:
            if rung.device == "cuda" and rung.refusal(p) is None:
                launch.launch(p, rung)


@pytest.mark.parametrize("name", tasks.shipped())
def test_python_kernels_of_shipped_tasks_are_right(name: str) -> None:
    record = tasks.record_of(name)
    for rung in registry.rungs("cpu", name):
        p = record(**record.task.spec.check[-1])
        if rung.refusal(p) is None:
            judge.examine(rung, p, quick=False).close()


def test_a_launch_of_a_header_is_checked(tmp_path: Path) -> None:
    folder = made(tmp_path / "turned")
    tasks.find(folder)
    head = '/*\nop = "turned"\nrung = 1\nname = "a"\nidea = "b"\n%s*/\n'
    p = tasks.find(folder)(n=3, m=5)
    file = folder / "01_a.cu"
    for text, said in (
        ("", "lacks 'launch'"),
        ("[[launch]]\ngrid = 1\n", "says no block"),
        ("[[launch]]\ngrid = 1\nblock = 1.5\n", "is not a number"),
        ("[[launch]]\ngrid = [1, 2, 3, 4]\nblock = 1\n", "is not a number"),
        ("[[launch]]\ngrid = 1\nblock = 1\nthreads = 1\n", "unknown key 'threads'"),
        ('workspace = 8\nlaunch = "one_thread_an_output"\n', "workspace is said beside"),
        ('[[launch]]\ngrid = "q"\nblock = 1\n', "names 'q'"),
        ('[[launch]]\nkernel = "other"\ngrid = 1\nblock = 1\n', "are called turned"),
        ('[[launch]]\ngrid = "n - 3"\nblock = 1\n', "no kernel would start"),
        ('[[launch]]\ngrid = 1\nblock = "n - 4"\n', "not from 0"),
        ("[[launch]]\ngrid = 1\nblock = 2048\n", "more than the 1024"),
        ('launch = "softmax_rows"\n', "is not for turned"),
    ):
        file.write_text(head % text)
        with pytest.raises(KernelError) as error:
            launch.launch(p, registry.find("cuda", "turned", "a", [folder]))
        assert said in str(error.value), text
    stages = '[[launch]]\nkernel = "turned_x"\ngrid = ["n", "m"]\nblock = 64\n'
    stages += '[[launch]]\ngrid = "n - 3"\nblock = 1\n'
    file.write_text(head % ('workspace = "4 * n * outputs"\n' + stages))
    how = launch.launch(p, registry.find("cuda", "turned", "a", [folder]))
    assert [(stage.function, stage.grid) for stage in how.stages("turned")] == [("turned_x", (3, 5, 1))]
    assert how.workspace_nbytes == 180
