"""What must hold of a step that was run: each check gives sentences of what does not.

Every step: its exit code, no traceback anywhere, one sentence on standard error where it refuses, the files
that it was to write; and of each run, ladder and profile that it left, every case as it should be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.results.event_files import events_in
from bench.results.folder import Folder
from bench.results.folders import open_folder
from bench.results.kinds import kind_of
from bench.results.ladder_records import RungMeasurement
from bench.results.records import Case, Measurement
from bench.results.rows import reference_of
from bench.results.store import LOG_FILE
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.comparison import RunFolder
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.ladder import LadderFolder
from bench.run.kinds.profile import ProfileFolder
from engine import backends
from engine.backend import Answering
from kernels import precision as precisions
from kernels.errors import InputError
from kernels.precision import MIXED, budget
from tests.rehearsal.machine import Machine
from tests.rehearsal.steps import Expect, Step

TRACEBACKS = ("Traceback (most recent call last)", "Exception ignored in", "Fatal Python error")
# Below fp32's accuracy images on the border between two classes may fall to either side.
AGREEMENT = {"fp32": 1.0, "fp32-tc": 1.0, "tf32": 0.9, "fp16": 0.9, "bf16": 0.9}


@dataclass(frozen=True)
class Result:
    """What a step left. code: None where it was ended after its time; folder: where it ran."""

    code: int | None
    out: str
    err: str
    folder: Path
    began: float = 0.0


def problems(step: Step, result: Result, machine: Machine) -> list[str]:
    """What is wrong, a sentence each; none where all is as it must be."""
    found = [*_process(step, result), *_files(step.expect, result)]
    if "main.py" in step.command:
        found += _runs(step, result, machine)
    return found


def _process(step: Step, result: Result) -> Iterator[str]:
    expect = step.expect
    if result.code is None:
        yield f"not done after {step.timeout_s:g} s"
    elif result.code not in expect.codes:
        last = (result.err.strip() or result.out.strip()).splitlines()[-1:]
        yield f"exit code {result.code}{': ' + last[0] if last and result.code else ''}"
    yield from _traceback(result.out, "standard output")
    yield from _traceback(result.err, "standard error")
    # What is told of the machine, whatever is asked, is no part of the answer.
    said = [line for line in result.err.strip().splitlines() if not line.startswith("warning: ")]
    if expect.codes == (2,) and len(said) != 1:
        yield f"{len(said)} lines on standard error, not one sentence"
    if not result.out.strip() and not expect.silent and expect.codes == (0,):
        yield "nothing on standard output"
    if expect.says and expect.says not in result.out + result.err:
        yield f"nothing says “{expect.says}”"


def _traceback(text: str, where: str, allowed: tuple[str, ...] = ()) -> Iterator[str]:
    for sign in TRACEBACKS:
        if sign in text and sign not in allowed:
            last = text[text.index(sign) :].strip().splitlines()[-1]
            yield f"a traceback on {where}: {last}"
            return


def _files(expect: Expect, result: Result) -> Iterator[str]:
    for name in expect.made:
        path = result.folder / name
        if not path.exists():
            yield f"{name} was not written"
        elif not (any(path.iterdir()) if path.is_dir() else path.stat().st_size):
            yield f"{name} is empty"
        elif path.suffix == ".csv" and len(path.read_text("utf-8", "replace").splitlines()) < 2:
            yield f"{name} has no line below its heading"
        elif path.suffix == ".json" and not _is_json(path):
            yield f"{name} is no JSON"
    if expect.pictures:
        yield from _pictures(result.folder / expect.pictures)


def _is_json(path: Path) -> bool:
    try:
        return bool(msgspec.json.decode(path.read_bytes()))
    except msgspec.DecodeError:
        return False


def pages() -> list[str]:
    """The modules in gui/pages that are a page, without Qt."""
    import gui.pages

    [folder] = map(Path, gui.pages.__path__)
    files = [*folder.glob("*.py"), *folder.glob("*/__init__.py")]
    found = [path for path in files if re.search(r"^PAGE\b", path.read_text(encoding="utf-8"), re.MULTILINE)]
    return sorted(path.parent.name if path.name == "__init__.py" else path.stem for path in found)


def _pictures(folder: Path) -> Iterator[str]:
    """Every page of the window that there is, in both themes, and something on it."""
    for name in (f"{page}-{theme}" for page in pages() for theme in ("light", "dark")):
        path = folder / f"{name}.png"
        if not path.is_file():
            yield f"there is no picture of the page {name}"
        elif reason := blank(path):
            yield f"the picture {name}.png {reason}"


def blank(path: Path) -> str:
    """Why a picture shows nothing; "" where it shows something."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            counted = image.convert("RGB").getcolors(image.width * image.height) or []
            pixels = image.width * image.height
    except OSError as error:
        return f"cannot be read ({error})"
    most = max(count for count, _ in counted)
    return f"is blank: one colour in {most / pixels:.1%} of it" if most > 0.99 * pixels else ""


# ------------------------------------------------------------------------------------ what a command measured


def _runs(step: Step, result: Result, machine: Machine) -> Iterator[str]:
    expect = step.expect
    for folder in new_folders(result):
        try:
            held = open_folder(folder)
            found = [*_folder(held, expect, machine), *_left_out(held, step, machine)]
        except InputError as error:
            yield str(error)
            continue
        log = folder / LOG_FILE
        if log.is_file():
            # A fault of native code tells Python's stack, which is no traceback of ours.
            allowed = ("Fatal Python error",) if expect.bad == "crashed" else ()
            found += _traceback(log.read_text("utf-8", "replace"), LOG_FILE, allowed)
        yield from (f"{folder.name}: {sentence}" for sentence in found)


def new_folders(result: Result) -> list[Path]:
    """The runs, ladders and profiles that a step measured something in."""
    found = {path.parent for path in result.folder.rglob("results.jsonl")}
    found |= {
        path.parent for name in ("run", "ladder", "profile") for path in result.folder.rglob(f"{name}.json")
    }
    return sorted(path for path in found if kind_of(path) is not None and _changed(path) >= result.began)


def _changed(folder: Path) -> float:
    return max(path.stat().st_mtime for path in folder.glob("*.json*"))


def _folder(held: Folder[Any, Any], expect: Expect, machine: Machine) -> Iterator[str]:
    if held.kind is COMPARISON:
        yield from _comparison(held, expect, machine)
    elif held.kind is LADDER:
        yield from _ladder(held, expect)
    else:
        yield from _profile(held, expect, machine)


def _left_out(held: Folder[Any, Any], step: Step, machine: Machine) -> Iterator[str]:
    """Where nobody names a backend or a device, all that this machine should have takes part: one that is
    left out because something of it is missing would not be seen."""
    if {"--backend", "--device", "--resume", "course", "goals"} & set(step.command):
        return  # a course's report measures each device by itself, goals are of one
    if held.kind is LADDER:
        if held.header.job.device != machine.device:
            yield f"it ran on {held.header.job.device}, not on {machine.device}"
        return
    cases = held.cases
    for name in machine.backends:
        if name not in {case.backend for case in cases}:
            yield f"{name} was left out"


def _unsupported(case: Case, offered: tuple[str, ...], machine: Machine) -> bool:
    """Whether a case is to be refused here. A GPU's backends offer every precision in which the reference
    computes, and ours all of them."""
    own = precisions.of(case.precision).reference != case.precision and case.precision not in offered
    if case.backend.partition("-")[2].startswith("cuda"):
        return not machine.has_gpu or (own and case.backend != machine.backends[0])
    return case.precision not in offered and not (budget(case.precision) is not None and MIXED in offered)


def _comparison(folder: RunFolder, expect: Expect, machine: Machine) -> Iterator[str]:
    measurements = folder.measurements()
    left = {case.key for case in folder.header.cases} - {m.case.key for m in measurements}
    if left or not measurements:
        yield f"{len(left)} of {len(folder.header.cases)} cases have no result ({', '.join(sorted(left))})"
    offered = {info.name: info.precisions for info in folder.header.environment.backends}
    answering = {name for name, it in backends.all_backends().items() if isinstance(it, Answering)}
    ran = False
    for m in measurements:
        case = m.case
        wanted = expect.bad if expect.bad and case.backend == machine.backends[0] else "ok"
        if case.backend in answering:
            wanted = "untimed"
        elif _unsupported(case, offered.get(case.backend, ()), machine):
            wanted = "unsupported"
        ran |= wanted != "unsupported"
        if m.disposition != wanted:
            yield f"{case.words} is {m.disposition}, not {wanted}{f' ({m.reason})' if m.reason else ''}"
    if measurements and not ran:
        yield "no case was to be measured"
    yield from _answers(measurements)


def _answers(measurements: tuple[Measurement, ...]) -> Iterator[str]:
    """Whoever has a reference answers as it does, image by image, and as often rightly."""
    found = {m.case: m for m in measurements}
    for m in measurements:
        if m.disposition != "ok":
            continue
        accuracy, words = m.accuracy, m.case.words
        if accuracy is None or not (accuracy.images or accuracy.checked):
            yield f"{words} has no answers"
            continue
        yield from _layers(m)
        if not m.samples_ns:
            yield f"{words} has no times"
        reference = reference_of(m, found)
        if reference is None or reference.accuracy is None or reference.disposition != "ok":
            continue
        if not accuracy.images:  # its outputs are no classes: they were held against float64 alone
            continue
        least = AGREEMENT[m.case.precision]
        if accuracy.agreement is None:
            yield f"{words} was not held against {reference.case.backend}"
        elif accuracy.agreement < least:
            yield f"{words} agrees with {reference.case.backend} on {accuracy.agreement:.1%} of the images"
        own, other = accuracy.top1, reference.accuracy.top1
        if own is not None and other is not None and abs(own - other) > 1 - least:
            yield f"{words} has {own:.2%} right and {reference.case.backend} {other:.2%}"


def _layers(m: Measurement) -> Iterator[str]:
    """A layer beyond its bound is a fault of ours; of a library it has to be told beside its time."""
    marked = any(" alone: " in warning for warning in m.validity.warnings)
    for layer in m.layers:
        if layer.isolated is None or layer.isolated.ok:
            continue
        told = f"its layer {layer.nodes[0]} is not ({layer.isolated.reason})"
        if m.case.backend.startswith("engine-"):
            yield f"{m.case.words} is ok, and {told}"
        elif not marked:
            yield f"{m.case.words} has no mark, and {told}"


def _missing(m: RungMeasurement) -> bool:
    """Whether it is the reference, which has no kernel for this on the device."""
    return m.case.is_reference and m.disposition == "unsupported" and "every node" in m.reason


def _ladder(folder: LadderFolder, expect: Expect) -> Iterator[str]:
    measurements = folder.measurements()
    left = {case.key for case in folder.header.cases} - {m.case.key for m in measurements}
    if left or not measurements:
        yield f"{len(left)} of {len(folder.header.cases)} cases have no result ({', '.join(sorted(left))})"
    if not any(m.disposition == "ok" and not m.case.is_reference for m in measurements):
        yield "no rung is right"
    if expect.bad and not any(m.case.user for m in measurements):
        yield "the user's kernel is not in it"
    for m in measurements:
        if _missing(m):
            continue
        case, why = m.case, f" ({m.reason})" if m.reason else ""
        if expect.bad and case.user:
            fault = m.finding.fault if m.finding else ""
            if m.disposition != expect.bad:
                yield f"{case.words} is {m.disposition}, not {expect.bad}{why}"
            elif fault != expect.fault:
                yield f"{case.words} is told “{fault}”, not “{expect.fault}”{why}"
        elif m.disposition not in ("ok", "unsupported") or (
            m.disposition != "ok" and (case.user or (case.is_reference and case.precision == "fp32"))
        ):
            yield f"{case.words} is {m.disposition}{why}"


def _profile(folder: ProfileFolder, expect: Expect, machine: Machine) -> Iterator[str]:
    measurements = folder.measurements()
    if len(measurements) != len(folder.header.cases) or not measurements:
        yield f"{len(measurements)} of {len(folder.header.cases)} cases have a result"
    for m in measurements:
        wanted = expect.bad if expect.bad and m.case.backend == machine.backends[0] else "ok"
        if m.disposition != wanted:
            yield f"{m.case.words} is {m.disposition}, not {wanted}{f' ({m.reason})' if m.reason else ''}"
        if m.disposition != "ok":
            continue
        events = events_in(folder.path, m)
        if not events.activities and (m.device == "cuda" or not events.intervals):
            yield f"{m.case.words} has no {'kernels' if m.device == 'cuda' else 'events'}"
