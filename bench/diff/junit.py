"""A diff as JUnit's XML, which CI servers show: a test a case, which fails where the gate does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from bench.diff import sentences
from bench.diff.records import Change, Diff
from bench.words import plain

# What XML 1.0 cannot hold even as a reference.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_xml(diff: Diff, failing: Mapping[str, str]) -> str:
    """failing: the cases that the gate fails on, by key, with the reason."""
    skipped = {change.pair.key for change in diff.changes if not change.matched} - failing.keys()
    counts = {"tests": len(diff.changes), "failures": len(failing), "errors": 0, "skipped": len(skipped)}
    attributes = {name: str(count) for name, count in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "kernelscope runs diff", **attributes})
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
        _case(suite, change, failing.get(change.pair.key, ""), change.pair.key in skipped, diff)
    ElementTree.SubElement(suite, "system-out").text = _text(
        "\n".join([*sentences.heading(diff), *sentences.differences(diff), sentences.verdict(diff)])
    )
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, change: Change, why: str, skipped: bool, diff: Diff) -> None:
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
    elif skipped:
        ElementTree.SubElement(case, "skipped", message=_text(change.lost or "only in B"))
    else:
        ElementTree.SubElement(case, "system-out").text = _text(told(change))


def told(change: Change) -> str:
    """What came of a case, in a line."""
    from bench.diff.judging import amount

    parts = [change.verdict.lower(), amount(change.ratio) if change.ratio is not None else "", change.apart]
    return "; ".join(filter(None, (*parts, change.worse, *change.doubts)))


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", plain.printable(text))
