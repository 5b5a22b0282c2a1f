"""docs/nets.md: what runs of the nets, how right and how fast, from what was measured on each machine."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from bench.words import plain, units
from engine.ops import LISTED
from tests.zoo.kept import ROOT, Kept, Outcome
from tests.zoo.nets import EXPORTERS, FORMS, NETS, Net, exports

PAGE = ROOT / "docs" / "nets.md"
COMMAND = "python -m tests.zoo write"
# Dispositions as the page calls them; any other by its own name.
WORDS = {"ok": "right", "unsupported": "refused", "incorrect": "**wrong**"}
NOT_MEASURED = "not measured"


def text(measured: Mapping[str, Kept]) -> str:
    """The page. measured: by the short name of its machine."""
    lines = [
        "# Well-known nets",
        "",
        "Well-known nets, as the usual exporters write them, with a fixed batch size of 1 and with an open",
        "one. Each file is compared as a user would do it: every answer against float64, then times in",
        "turns with ONNX Runtime on the same device. The weights are drawn from a seed, so that activations",
        "keep a variance near 1: the kernels do the same work whatever a net recognises.",
        "",
        "The nets are exported in an environment with the packages of the extra `train`. Then they are",
        "measured, and this page is written:",
        "",
        "    python -m tests.zoo.export DIR",
        "    python -m tests.zoo measure DIR",
        f"    {COMMAND}",
        "",
        "The exported files contain no weights and are small: you can take them to another machine.",
        "",
        *_summary(measured),
    ]
    for name, kept in measured.items():
        lines += _machine(name, kept)
    return "\n".join(lines)


def _summary(measured: Mapping[str, Kept]) -> list[str]:
    """A net a line, a device a column."""
    columns = {
        device: [kept for kept in measured.values() if kept.machine.device == device] for device in DEVICES
    }
    lines = [
        f"| net | files | {' | '.join(f'engine-{device}' for device in columns)} |",
        "|---|---:|" + "---|" * len(columns),
    ]
    for net in NETS:
        files = [export.stem for export in exports((net.name,))]
        cells = [_came(net, files, kepts, f"engine-{device}") for device, kepts in columns.items()]
        lines.append(f"| {net.title} | {len(files)} | {' | '.join(cells)} |")
    return [*lines, ""]


DEVICES = ("cpu", "cuda")


def _came(net: Net, files: Sequence[str], kepts: Iterable[Kept], backend: str) -> str:
    """Of the files of a net on one backend: how many came to what."""
    worst: dict[str, str] = {}
    for kept in kepts:
        for outcome in kept.outcomes:
            if outcome.backend == backend and outcome.file in files and worst.get(outcome.file, "ok") == "ok":
                worst[outcome.file] = outcome.result
    if not worst:
        return NOT_MEASURED
    counts = {result: list(worst.values()).count(result) for result in dict.fromkeys(worst.values())}
    if len(worst) < len(files):
        counts[NOT_MEASURED] = len(files) - len(worst)
    return ", ".join(f"{count} {WORDS.get(result, result)}" for result, count in counts.items())


def _machine(name: str, kept: Kept) -> list[str]:
    """What was measured on one machine: every file with its times, and why what is refused is."""
    ours, reference = f"engine-{kept.machine.device}", f"ort-{kept.machine.device}"
    by_file: dict[tuple[str, int], dict[str, Outcome]] = defaultdict(dict)
    for outcome in kept.outcomes:
        by_file[outcome.file, outcome.batch][outcome.backend] = outcome
    days = sorted({asked.day for asked in kept.asked.values()})
    settings: dict[str, list[str]] = defaultdict(list)
    for net in NETS:
        files = [export.stem for export in exports((net.name,)) if export.stem in kept.asked]
        asked_of = {kept.asked[file].settings for file in files}
        for file in files:
            told = net.name if len(asked_of) == 1 else file
            if told not in settings[kept.asked[file].settings]:
                settings[kept.asked[file].settings].append(told)
    written = ", ".join(dict.fromkeys(kept.exported.values()))
    lines = [
        f"## On {name}",
        "",
        *(f"- {line}" for line in kept.machine.words),
        f"- files by {written}; measured {' to '.join(dict.fromkeys((days[0], days[-1])))}",
        "",
        "Compared with",
        "",
        *(f"- `{told}`: {', '.join(nets)}" for told, nets in settings.items()),
        "",
        "The error is ‖y − y₆₄‖ / ‖y₆₄‖ of the outputs against float64. Times are medians of a pass over one",
        "batch. The ratio is the reference's time divided by ours: above 1× ours is faster. “!” marks a",
        "doubtful time.",
        "",
        f"| net | exporter | batch | {ours} | error | {reference}'s | time | {reference}'s | ratio |",
        "|---|---|---:|---|---:|---:|---:|---:|---:|",
    ]
    for export in exports():
        for (file, batch), found in by_file.items():
            if file != export.stem:
                continue
            size = f"{batch}, {export.form}" if export.form == FORMS[0] else str(batch or "")
            cells = [export.net.title, EXPORTERS[export.exporter], size]
            lines.append(f"| {' | '.join(cells)} | {_cells(found.get(ours), found.get(reference))} |")
    return [*lines, "", *_refusals(by_file, ours), *_refusals(by_file, reference)]


def _cells(own: Outcome | None, reference: Outcome | None) -> str:
    result = NOT_MEASURED if own is None else WORDS.get(own.result, own.result)
    ratio = "" if own is None or own.speedup is None else units.times(own.speedup)
    return " | ".join([result, _error(own), _error(reference), _time(own), _time(reference), ratio])


def _error(outcome: Outcome | None) -> str:
    return "" if outcome is None or outcome.error is None else units.exponent(outcome.error)


def _time(outcome: Outcome | None) -> str:
    if outcome is None or outcome.median_s is None:
        return ""
    return units.duration(outcome.median_s * 1e9) + (" !" if outcome.doubtful else "")


def _refusals(by_file: Mapping[tuple[str, int], Mapping[str, Outcome]], backend: str) -> list[str]:
    """What did not come to an answer, with the reason; what has the same reason is one line."""
    why: dict[str, list[str]] = defaultdict(list)
    for (file, batch), found in by_file.items():
        outcome = found.get(backend)
        if outcome is not None and outcome.result != "ok":
            # Without where the operators are listed; what was measured earlier lists them itself.
            reason = re.split(f"; (?:it supports |{LISTED})", outcome.reason)[0] or outcome.result
            why[reason].append(f"{file} (batch {batch})")
    if not why:
        return []
    told = [f"- {', '.join(files)}: {plain.markdown(reason)}" for reason, files in why.items()]
    return [f"Not right on {backend}:", "", *told, ""]
