"""The texts of the element-wise CUDA kernels, compiled for the host: every kind of them, and every type."""

from __future__ import annotations

import numpy as np
import pytest

from engine.cuda.stages import kernel_calls
from kernels import launch, registry
from kernels.ops import Params
from kernels.ops.unary import Unary
from kernels.registry import Rung
from tests.bench.judge import on_the_host
from tests.kernels import cuda_cases, elementwise
from tests.kernels.cuda_cases import Case

pytestmark = pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host")


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> on_the_host.Hosted:
    return on_the_host.Hosted(tmp_path_factory.mktemp("hosted"))


def computed(hosted: on_the_host.Hosted, rung: Rung, p: Params, inputs: tuple[np.ndarray, ...]) -> np.ndarray:
    how = launch.launch(p, rung)
    module = hosted.RawModule(path=str(hosted.compiled(rung, "sm_90", how.defines)))
    given = [hosted.asarray(array) for array in inputs]
    y = hosted.asarray(np.full(p.output_shape, 77, p.out_dtype))
    addresses = [int(array.data.ptr) for array in given]
    for start in kernel_calls(hosted, module, rung, how, addresses, int(y.data.ptr), 0):
        start()
    return y.on_host().reshape(p.output_shape)


def compared(hosted: on_the_host.Hosted, op: str, number: int, samples: list[Params]) -> int:
    """How many of the samples the rung takes, and answers rightly."""
    rung, count = registry.find("cuda", op, number), 0
    for p in samples:
        if cuda_cases.takes(rung, p):
            inputs = elementwise.inputs(p, 1)
            case = Case(p, inputs, elementwise.answer(p, inputs))
            assert cuda_cases.differs(computed(hosted, rung, p, inputs), case) == "", p
            count += 1
    return count


def test_every_function(hosted: on_the_host.Hosted) -> None:
    samples = elementwise.functions()
    assert compared(hosted, "unary", 1, list(samples)) == len([p for p in samples if p.dtype == "float32"])
    assert compared(hosted, "unary", 3, list(samples)) == len([p for p in samples if p.dtype != "float32"])


def test_every_operation(hosted: on_the_host.Hosted) -> None:
    samples = elementwise.arithmetic()
    assert compared(hosted, "binary", 1, list(samples)) == len([p for p in samples if p.dtype == "float32"])
    assert compared(hosted, "binary", 3, list(samples)) == len([p for p in samples if p.dtype != "float32"])


@pytest.mark.parametrize(("op", "number"), [("compare", 1), ("where", 1), ("multiply_add", 1), ("concat", 1)])
def test_every_type(hosted: on_the_host.Hosted, op: str, number: int) -> None:
    samples = [p for p in elementwise.others() if p.op == op]
    assert compared(hosted, op, number, samples) == len(samples)


@pytest.mark.parametrize(
    "kind", ["clip", "leaky_relu", "elu", "softplus", "gelu", "hard_swish", "mish", "sign"]
)
def test_what_is_no_number(hosted: on_the_host.Hosted, kind: str) -> None:
    """As the kernels of the CPU have it."""
    x = np.float32([np.nan, np.inf, -np.inf, 1e4, -1e4, 0.0])
    p = elementwise.unary(kind, x.size)
    y = computed(hosted, registry.find("cuda", "unary", 1), p, (x,))
    expected = elementwise.answer(p, (x,))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-30)


def test_a_function_whose_parameters_are_swapped_is_seen(hosted: on_the_host.Hosted) -> None:
    p = elementwise.unary("hard_sigmoid", 37)
    inputs = elementwise.inputs(p)
    swapped = Unary("hard_sigmoid", 37, alpha=p.beta, beta=p.alpha)
    y = computed(hosted, registry.find("cuda", "unary", 1), swapped, inputs)
    assert cuda_cases.differs(y, Case(p, inputs, elementwise.answer(p, inputs))) != ""
