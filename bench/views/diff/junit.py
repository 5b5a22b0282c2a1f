"""A diff as JUnit's XML, which CI servers show: a test a case, which fails where the gate does."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from xml.etree import ElementTree

from bench.results.stats import Verdict
from bench.views.diff.records import Change, Diff
from bench.views.sentences import diff_sentences as sentences
from bench.words import orders, plain

# What XML 1.0 cannot hold even as a reference.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_xml(diff: Diff, failing: Mapping[str, str], gates: Collection[str] = (), error: str = "") -> str:
    """failing: the cases that the gates fail on, by key, with the reason; error: why these could not judge,
    which is of every other case. A case that is not decided passes no gate of how fast it is."""
    wanted = not {"slower", "any"}.isdisjoint(gates)
    skipped = {
        change.pair.key: "only in B" if not change.matched else change.undecided
        for change in diff.changes
        if not change.matched or (wanted and change.verdict == Verdict.UNCLEAR)
    }
    skipped = {} if error else {key: why for key, why in skipped.items() if key not in failing}
    errors = {change.pair.key for change in diff.changes if error} - failing.keys()
    root, attributes = _root(len(diff.changes), len(failing), len(errors), len(skipped))
    named = {"name": _text(f"{diff.a.name} → {diff.b.name}")}
    suite = ElementTree.SubElement(root, "testsuite", {**named, **attributes})
    if diff.b.created_at:
        suite.set("timestamp", diff.b.created_at)
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("A", diff.a.words), ("B", diff.b.words), ("bound", f"{diff.bound:g}")):
        ElementTree.SubElement(properties, "property", name=name, value=_text(value))
    for difference in diff.differences:
        ElementTree.SubElement(properties, "property", name="differs", value=_text(difference.words))
    for change in diff.changes:
        why = error if change.pair.key in errors else ""
        _case(suite, change, failing.get(change.pair.key, ""), skipped.get(change.pair.key, ""), why, diff)
    ElementTree.SubElement(suite, "system-out").text = _text(
        "\n".join([*sentences.heading(diff), *sentences.differences(diff), sentences.verdict(diff)])
    )
    return _written(root)


def of_error(name: str, error: str) -> str:
    """Of two runs that could not be held against each other at all: one test, which is in error. name: of
    the two."""
    root, attributes = _root(1, 0, 1, 0)
    suite = ElementTree.SubElement(root, "testsuite", {"name": _text(name), **attributes})
    case = ElementTree.SubElement(suite, "testcase", classname="runs diff", name=_text(name))
    ElementTree.SubElement(case, "error", message=_text(error), type="not judged").text = _text(error)
    return _written(root)


def _root(tests: int, failures: int, errors: int, skipped: int) -> tuple[ElementTree.Element, dict[str, str]]:
    """The file's root, and the counts that its one suite has, too."""
    counts = {"tests": tests, "failures": failures, "errors": errors, "skipped": skipped}
    attributes = {name: str(count) for name, count in counts.items()}
    return ElementTree.Element("testsuites", {"name": "kernelscope runs diff", **attributes}), attributes


def _written(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, change: Change, why: str, skipped: str, error: str, diff: Diff) -> None:
    b = change.pair.b
    taken = b.time.value * 1e-9 if b is not None and b.time is not None else 0.0
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_text(f"{diff.kind}.{change.pair.model or change.pair.who}"),
        name=_text(change.pair.words),
        time=f"{taken:.9f}",
    )
    if why:
        failure = ElementTree.SubElement(
            case, "failure", message=_text(why), type="wrong" if change.wrong else change.verdict or "lost"
        )
        failure.text = _text("\n".join(filter(None, (why, b.left if b is not None else ""))))
    elif error:
        ElementTree.SubElement(case, "error", message=_text(error), type="not judged").text = _text(error)
    elif skipped:
        ElementTree.SubElement(case, "skipped", message=_text(change.lost or skipped))
    else:
        ElementTree.SubElement(case, "system-out").text = _text(told(change))


def told(change: Change) -> str:
    """What came of a case, in a line."""
    parts = [
        orders.interval_words(change.verdict, change.ratio, ends=True),
        orders.reason(change.undecided),
        change.apart,
    ]
    return "; ".join(filter(None, (*parts, change.worse, *change.doubts)))


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", plain.printable(text))
