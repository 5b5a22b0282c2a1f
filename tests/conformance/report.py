"""What `docs/conformance.md` says: how many of ONNX's tests our engine answers, and why not the others."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable

import onnx

from engine.ops import supported
from tests.conformance import kept, outcomes
from tests.conformance.exclusions import EVERYWHERE, LEFT_OUT, ON_CUDA
from tests.conformance.kept import Count
from tests.conformance.onnx_suite import Case, cases
from tests.conformance.outcomes import Outcome, outcome

BACKEND = "engine-cpu"
COMMAND = "python -m tests.conformance --write docs/conformance.md"
CUDA_COMMAND = "python -m tests.conformance --cuda"
# Of operators that no kernel computes: they run where their values are known before a pass.
_NO_KERNEL = "no kernel"


def reason(case: Case, came: Outcome) -> str:
    """Why a test is not run, by the list of exclusions or for want of an operator; "" where neither says."""
    for pattern, why in (*LEFT_OUT.items(), *EVERYWHERE.items()):
        if re.search(pattern, case.name):
            return why
    return _NO_KERNEL if came.lacking else ""


def counts(backend: str, processes: int = 1) -> dict[str, Count]:
    """Of the tests of each group, counted now."""
    return _counts(_kinds(backend, processes))


def _kinds(backend: str, processes: int = 1) -> dict[str, set[str]]:
    """What came of the forms of each test, by its name."""
    found: dict[str, set[str]] = defaultdict(set)
    for case, kind in zip(cases(), outcomes.kinds(backend, processes), strict=True):
        if not any(re.search(pattern, case.name) for pattern in LEFT_OUT):
            found[case.name].add(kind)
    return found


def _counts(kinds: dict[str, set[str]]) -> dict[str, Count]:
    groups: dict[str, Callable[[Case], bool]] = {
        "of one operator, that take or give float32": lambda case: case.node and case.float32,
        "of one operator, that take or give float16": lambda case: case.node and case.float16,
        "of one operator, all": lambda case: case.node,
        "of PyTorch's converters, and simple models": lambda case: not case.node,
    }
    tests = {case.name: case for case in cases()}
    found = {}
    for words, belongs in groups.items():
        names = [name for name, case in tests.items() if belongs(case)]
        wrong = tuple(name for name in names if "wrong" in kinds[name])
        right = sum("right" in kinds[name] and "wrong" not in kinds[name] for name in names)
        found[words] = Count(tests=len(names), right=right, wrong=wrong)
    return found


def _table(found: dict[str, Count]) -> list[str]:
    rows = [
        (words, of.tests, of.right, of.tests - of.right - len(of.wrong), len(of.wrong))
        for words, of in found.items()
    ]
    return [
        "| tests | there are | right | refused | wrong |",
        "|---|---:|---:|---:|---:|",
        *(f"| {words} | {' | '.join(f'{number:,}' for number in numbers)} |" for words, *numbers in rows),
    ]


def _on_cuda() -> list[str]:
    of = kept.load()
    if of is None:
        return ["On a GPU it was not counted."]
    wrong = sorted({name for count in of.counts.values() for name in count.wrong})
    return [
        f"On {of.device}, counted with onnx {of.onnx} on {of.backend} on {of.day} by",
        "",
        f"    {CUDA_COMMAND}",
        "",
        *_table(of.counts),
        *(["", f"Wrong there: {', '.join(map(_code, wrong))}."] if wrong else []),
    ]


def text() -> str:
    """The page. Every figure of it is counted now, but for a GPU's, which are kept."""
    tests: dict[str, list[Case]] = defaultdict(list)
    for case in cases():
        tests[case.name].append(case)
    kinds = _kinds(BACKEND)
    nodes = [name for name, forms in tests.items() if forms[0].node]
    refused = [name for name in tests if not kinds[name] & {"right", "wrong"}]
    first = {case.name: outcome(BACKEND, index) for index, case in reversed([*enumerate(cases())])}
    why = Counter(reason(tests[name][0], first[name]) for name in refused)
    lacking = Counter(
        first[name].lacking for name in refused if reason(tests[name][0], first[name]) == _NO_KERNEL
    )
    occurring = {op for name in nodes for op in tests[name][0].op_types}
    claimed = [
        (op, sum(op in tests[name][0].op_types for name in nodes), right)
        for op in sorted(occurring | set(supported()))
        if (right := _right(op, nodes, tests, kinds)) or op in supported()
    ]
    lines = [
        "# Conformance",
        "",
        "The package of ONNX contains tests for every operator: a model of one node or a few, its inputs and",
        "the right outputs. Each test is run in two forms: with all inputs except the first as constants,",
        "like the weights of a model, and with all of them as inputs. Our engine has to answer rightly, or",
        "refuse the test with a reason; a wrong answer fails the suite.",
        "",
        f"Counted with onnx {onnx.__version__} on {BACKEND}. This page is written by",
        "",
        f"    {COMMAND}",
        "",
        "and a test fails if it differs from what this command would write.",
        "",
        *_table(_counts(kinds)),
        "",
        "A test counts as right if it is right in at least one of its forms and wrong in none.",
        "",
        *_on_cuda(),
        "",
        "## Operators",
        "",
        "For each operator: the tests in which it occurs, and how many of them are right.",
        "",
        "| operator | tests | right |",
        "|---|---:|---:|",
        *(f"| {op} | {there} | {right} |" for op, there, right in claimed),
        "",
        "## Exclusions",
        "",
        "| tests whose name matches | refused | because |",
        "|---|---:|---|",
        *(
            f"| {_code(pattern)} | {sum(bool(re.search(pattern, n)) for n in refused)} | {told} |"
            for pattern, told in EVERYWHERE.items()
        ),
        *(f"| {_code(p)}, on CUDA | | {told} |" for p, told in ON_CUDA.items()),
        *(f"| {_code(p)}, not run | | {told} |" for p, told in LEFT_OUT.items()),
        "",
        f"The other {why[_NO_KERNEL]:,} have operators that no kernel of ours computes, most often:",
        "",
        "| operator | tests |",
        "|---|---:|",
        *(f"| {op} | {count} |" for op, count in sorted(lacking.items(), key=lambda i: (-i[1], i[0]))[:40]),
        "",
    ]
    return "\n".join(lines)


def _right(op: str, nodes: list[str], tests: dict[str, list[Case]], kinds: dict[str, set[str]]) -> int:
    return sum(op in tests[name][0].op_types and "right" in kinds[name] for name in nodes)


def _code(pattern: str) -> str:
    escaped = pattern.replace("|", "\\|")
    return f"`{escaped}`"
