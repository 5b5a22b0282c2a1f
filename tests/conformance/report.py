"""What `docs/conformance.md` says: how many of ONNX's tests our engine answers, and why not the others."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import onnx

from engine.ops import full_name, supported
from tests.conformance.exclusions import EVERYWHERE, LEFT_OUT, ON_CUDA
from tests.conformance.onnx_suite import Case, cases
from tests.conformance.outcomes import outcome

BACKEND = "engine-cpu"
COMMAND = "python -m tests.conformance --write docs/conformance.md"
# Of operators that no kernel computes: they run where their values are known before a pass.
_NO_KERNEL = "no kernel"


def reason(case: Case) -> str:
    """Why a test is not run, by the list of exclusions or for want of an operator; "" where neither says."""
    for pattern, why in (*LEFT_OUT.items(), *EVERYWHERE.items()):
        if re.search(pattern, case.name):
            return why
    return _NO_KERNEL if missing(case) else ""


def missing(case: Case) -> list[str]:
    """Operators of the test that the engine does not have."""
    nodes = [node for node in case.proto.graph.node if node.op_type != "Constant"]
    return sorted({full_name(node.domain, node.op_type) for node in nodes}.difference(supported()))


def text() -> str:
    """The page. Every figure in it is counted now."""
    tests: dict[str, list[Case]] = defaultdict(list)
    kinds: dict[str, set[str]] = defaultdict(set)
    for index, case in enumerate(cases()):
        tests[case.name].append(case)
        if not any(re.search(pattern, case.name) for pattern in LEFT_OUT):
            kinds[case.name].add(outcome(BACKEND, index).kind)
    nodes = [name for name, forms in tests.items() if forms[0].node]
    single = [name for name in nodes if tests[name][0].float32]
    others = [name for name, forms in tests.items() if not forms[0].node]

    def row(what: str, names: list[str]) -> str:
        right = sum("right" in kinds[name] for name in names)
        wrong = sum("wrong" in kinds[name] for name in names)
        return f"| {what} | {len(names):,} | {right:,} | {len(names) - right - wrong:,} | {wrong:,} |"

    refused = [name for name in tests if not kinds[name] & {"right", "wrong"}]
    why = Counter(reason(tests[name][0]) for name in refused)
    lacking = Counter(op for name in refused for op in missing(tests[name][0]))
    claimed = [
        (op, sum(op in tests[name][0].op_types for name in nodes), _right(op, nodes, tests, kinds))
        for op in supported()
    ]
    lines = [
        "# Conformance",
        "",
        "The ONNX project ships tests of every operator with its package: a model of one node or a few, its",
        "inputs and the right outputs. Each is run in two forms: with all inputs but the first as constants,",
        "as models have their weights, and with all inputs fed. A test that our engine does not answer has",
        "to be refused in words; an answer that is wrong fails the suite.",
        "",
        f"Counted with onnx {onnx.__version__} on {BACKEND}. This page is written by",
        "",
        f"    {COMMAND}",
        "",
        "and a test fails where it is not what that would write.",
        "",
        "| tests | there are | right | refused | wrong |",
        "|---|---:|---:|---:|---:|",
        row("of one operator, that take or give float32", single),
        row("of one operator, all", nodes),
        row("of PyTorch's converters, and simple models", others),
        "",
        "Right is a test that is right in one of its forms at least and wrong in none.",
        "",
        "## Operators",
        "",
        "By operator: the tests in which it occurs, and those that are right.",
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
