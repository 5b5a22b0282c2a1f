"""The engine passes ONNX's own tests of its operators; what it refuses, it refuses for a reason."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from engine.backend import Backend
from kernels.errors import (
    KernelError,
    KernelscopeError,
    OutOfMemoryError,
    UnavailableError,
    UnsupportedError,
)
from tests import sampling
from tests.conformance import outcomes, report
from tests.conformance.exclusions import EVERYWHERE, LEFT_OUT, ON_CUDA
from tests.conformance.onnx_suite import Case, cases, of_modules, sample
from tests.conformance.outcomes import came_of, outcome
from tests.engine.backends.shared import EVERY_BACKEND, usable

pytestmark = pytest.mark.slow

SHARE = 64  # one in so many
PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
OURS = [parameter for parameter in EVERY_BACKEND if str(parameter.id).startswith("engine-")]


@pytest.fixture(autouse=True)
def _overflow() -> None:
    warnings.simplefilter("ignore")  # the suite overflows on purpose


@pytest.mark.sampled
@pytest.mark.timeout(900)  # all of them
@pytest.mark.parametrize("backend", OURS)
def test_no_answer_is_wrong_what_is_claimed_is_answered_and_the_page_says_so(backend: Backend) -> None:
    """In the form with constants, as models have them; where all inputs are fed a refusal is as good. One
    test: half a minute's answers are computed once. Of a sample neither the page nor the list of exclusions
    can be held to account."""
    usable(backend)
    excluded = EVERYWHERE | (ON_CUDA if backend.device == "cuda" else {})
    faults = []
    every = cases() if sampling.whole() else sample(SHARE)
    for index, case in enumerate(every):
        if any(re.search(pattern, case.name) for pattern in LEFT_OUT):
            continue
        came = outcome(backend.name, index) if sampling.whole() else came_of(backend.name, case)
        form = f"{case.name} ({'with constants' if case.constants else 'all fed'})"
        listed = any(re.search(pattern, case.name) for pattern in excluded)
        if came.kind == "wrong":
            faults.append(f"{form} is wrong: {came.why}")
        elif came.kind == "right" and listed:
            faults.append(f"{form} is right, and the list of exclusions has it")
        elif came.kind == "refused" and case.constants and not listed and not came.lacking:
            faults.append(f"{form} is refused, and no exclusion says why: {came.why}")
    assert every
    assert not faults, "\n".join(faults[:40])
    if not sampling.whole():
        return
    names = {case.name for case in every}
    for pattern in {**EVERYWHERE, **ON_CUDA, **LEFT_OUT}:
        assert any(re.search(pattern, name) for name in names), f"{pattern} has no test"
    page = PAGE.read_text(encoding="utf-8")
    # With another version of onnx the tests are others.
    if backend.device == "cpu" and f"onnx {onnx.__version__} " in page.replace("\n", " "):
        assert page == report.text(), f"write it anew: {report.COMMAND}"


@pytest.mark.sampled(4, "long")
def test_a_wrong_answer_is_seen() -> None:
    case = next(case for case in of_conv() if case.name == "test_conv_with_strides_padding")
    assert came_of("engine-cpu", case).kind == "right"
    off = case.expected[0].copy()
    off.flat[-1] += 1
    for expected in (off, case.expected[0][..., :-1]):
        assert came_of("engine-cpu", replace(case, expected=(expected,))).kind == "wrong"


def of_conv() -> tuple[Case, ...]:
    return cases() if sampling.whole() else of_modules("conv")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnsupportedError("not an operator of ours"), "refused"),
        (KernelError("CUDA failed on it: an illegal memory access"), "wrong"),
        (OutOfMemoryError("memory did not suffice"), "wrong"),
        (UnavailableError("the device is gone"), "wrong"),
    ],
)
def test_a_kernel_that_fails_is_no_refusal(
    error: KernelscopeError, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(name: str, case: object) -> None:
        raise error

    monkeypatch.setattr(outcomes, "_answers", fails)
    came = outcomes.came_of("engine-cpu", of_conv()[0])
    assert came.kind == kind
    assert str(error) in came.why
