"""`python -m tests.zoo measure DIR`: the exported files compared with the reference, as a user compares them.

Each net's files are filled with their weights, compared in one command of the program and removed again; what
came of it is kept after every net, so that a cut measuring is gone on with by naming the nets that are left.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import onnx

from bench.measure import environment
from bench.results.records import Environment
from bench.views.sentences.footer import machine as machine_words
from bench.views.sentences.footer import versions
from tests.rehearsal.machine import Machine as Looked
from tests.zoo import kept
from tests.zoo.drawn import bare, filled
from tests.zoo.kept import Asked, Kept, Machine, Outcome
from tests.zoo.nets import Export, exports

# Two images, so that an answer that belongs to another image shows.
SETTINGS = ("--dataset", "random", "--images", "2", "--instances", "1", "--no-layer-pass", "--charts", "none")


class _Recorded(msgspec.Struct):
    environment: Environment


def measure(
    folder: Path,
    names: Sequence[str],
    machine: Looked,
    more: Sequence[str],
    say: Callable[[str], None],
) -> Path:
    """Compare the files of these nets (of all without names) that lie in the folder, and keep what came of
    it. more: words of `compare` beside those that are always given. Raises ValueError where none lies
    there."""
    wanted: dict[str, list[Export]] = {}
    for export in exports(tuple(names)):
        if (folder / f"{export.stem}.onnx").is_file():
            wanted.setdefault(export.net.name, []).append(export)
    if not wanted:
        raise ValueError(f"no file of a net lies in {folder}; write them by python -m tests.zoo.export")
    command = [*(word for name in machine.backends for word in ("--backend", name)), *more, *SETTINGS]
    path = kept.file_of(machine.short)
    for files in wanted.values():
        outcomes, exported = _compared([folder / f"{export.stem}.onnx" for export in files], command)
        before = kept.load(path)
        now = Kept(
            machine=_machine(machine.device),
            exported=(before.exported if before else {})
            | {export.exporter: exported[export.stem] for export in files if export.stem in exported},
            asked=(before.asked if before else {})
            | {export.stem: Asked(settings=" ".join(command), day=_today()) for export in files},
            outcomes=_in_order([*_without(before, files), *outcomes]),
        )
        kept.save(now, path)
        for outcome in outcomes:
            case = f"{outcome.file}, {outcome.backend}, batch {outcome.batch}"
            say(f"{case}: {outcome.result}. {outcome.reason}")
    return path


def _compared(files: Sequence[Path], words: Sequence[str]) -> tuple[list[Outcome], dict[str, str]]:
    """What the program says of these files, and by file what wrote it."""
    exported = {}
    with tempfile.TemporaryDirectory() as temporary:
        whole = []
        for file in files:
            proto = bare(file)
            exported[file.stem] = f"{proto.producer_name} {proto.producer_version}".strip()
            whole.append(Path(temporary) / file.name)
            onnx.save(filled(proto), whole[-1])
            del proto
        run = Path(temporary) / "run"
        main = [sys.executable, "main.py", "compare", *map(str, whole), *words]
        ended = subprocess.run(
            [*main, "--format", "json", "--out", str(run)],
            cwd=kept.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        return [_outcome(row) for row in json.loads(ended.stdout)["cases"]], exported
    except ValueError:
        last = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
    ours = words[words.index("--backend") + 1]
    failed = Outcome(file="", backend=ours, batch=0, result="failed", reason=last)
    return [msgspec.structs.replace(failed, file=file.stem) for file in files], exported


def _outcome(row: dict[str, Any]) -> Outcome:
    same = {name: row[name] for name in ("backend", "batch", "median_s", "low_s", "high_s", "speedup")}
    return Outcome(
        file=row["model"],
        result=row["disposition"],
        reason=row["reason"] or "",
        error=row["rel_l2_error"],
        bound=row["error_bound"],
        verdict=row["verdict"] or "",
        doubtful=row["doubtful"],
        **same,
    )


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _machine(device: str) -> Machine:
    recorded = _Recorded(environment.collect())
    return Machine(device=device, words=(machine_words(recorded), versions(recorded)))


def _without(before: Kept | None, files: Sequence[Export]) -> list[Outcome]:
    """What was kept of other files."""
    stems = {export.stem for export in files}
    return [o for o in (before.outcomes if before else ()) if o.file not in stems]


def _in_order(outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """As `exports` has them; of a file that there is no more, nothing."""
    place = {export.stem: index for index, export in enumerate(exports())}
    known = [outcome for outcome in outcomes if outcome.file in place]
    return tuple(sorted(known, key=lambda outcome: (place[outcome.file], outcome.batch)))
