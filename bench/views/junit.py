"""JUnit's XML, which CI servers show: one suite, a test a case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from bench.words import plain

# What XML 1.0 cannot hold even as a reference.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """One case. name, of: as a CI server lists it, and below what; time_s: of a pass. At most one of failure,
    error and skipped says why it did not pass; kind: of the failure, in a word; text: what else is told of a
    failure, or of a case that passed."""

    of: str
    name: str
    time_s: float = 0.0
    failure: str = ""
    error: str = ""
    skipped: str = ""
    kind: str = ""
    text: str = ""


def to_xml(
    command: str,
    suite: str,
    tests: Sequence[Case],
    created_at: str = "",
    properties: Iterable[tuple[str, str]] = (),
    told: str = "",
) -> str:
    """command: of this program, that the tests come from; suite: what they are called together; told: what is
    said of all of them."""
    counts = {
        "tests": str(len(tests)),
        "failures": str(sum(bool(test.failure) for test in tests)),
        "errors": str(sum(bool(test.error) for test in tests)),
        "skipped": str(sum(bool(test.skipped) for test in tests)),
    }
    root = ElementTree.Element("testsuites", {"name": f"kernelscope {command}", **counts})
    made = ElementTree.SubElement(root, "testsuite", {"name": _text(suite), **counts})
    if created_at:
        made.set("timestamp", created_at)
    if listed := list(properties):
        held = ElementTree.SubElement(made, "properties")
        for name, value in listed:
            ElementTree.SubElement(held, "property", name=name, value=_text(value))
    for test in tests:
        _case(made, test)
    if told:
        ElementTree.SubElement(made, "system-out").text = _text(told)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def of_error(command: str, name: str, error: str) -> str:
    """Of what could not be judged at all: one test, which is in error."""
    return to_xml(command, name, [Case(of=command, name=name, error=error)])


def _case(suite: ElementTree.Element, test: Case) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=_text(test.of), name=_text(test.name), time=f"{test.time_s:.9f}"
    )
    if test.failure:
        failure = ElementTree.SubElement(case, "failure", message=_text(test.failure), type=test.kind)
        failure.text = _text("\n".join(filter(None, (test.failure, test.text))))
    elif test.error:
        error = ElementTree.SubElement(case, "error", message=_text(test.error), type="not judged")
        error.text = _text(test.error)
    elif test.skipped:
        ElementTree.SubElement(case, "skipped", message=_text(test.skipped))
    else:
        ElementTree.SubElement(case, "system-out").text = _text(test.text)


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", plain.printable(text))
