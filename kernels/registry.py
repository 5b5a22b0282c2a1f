"""Finds the kernels: reads every kernel file and its header, and says which of them fit an operation.

A rung is one kernel file, `<device>/<op>/NN_name.cu` or `.py`. The rungs of one operator on one device, by
number, are its ladder: the higher, the more ideas. Rungs that are no step of that story stand beside it (side
rungs). A `.py` file is a rung for the CPU, unless its header names a language for CUDA (kernels.languages).
The header is TOML: in a `.cu` file the text of the first comment `/* … */`, in a `.py` file the first lines,
each behind `#`:

    op = "conv"                  # one of kernels.ops.OPS or a task (kernels.tasks): the folder's name
    rung = 4                     # the number in the file's name
    name = "shared_tiles"        # the name in the file's name
    idea = "One sentence: what this rung does that the one below does not."
    launch = "conv_tiles"        # CUDA only, required: the name of a launch shape of kernels.launch
                                 # or [[launch]], once for each kernel, with workspace (kernels.launch.given)
    language = "triton"          # CUDA in a .py, required: one of kernels.languages
    precision = "tf32"           # what it computes in, one of kernels.precision; absent: fp32.
                                 # .cu: ["fp16", "bf16"] makes a rung of each (`_of_precision`)
    method = "winograd"          # the algorithm, one of kernels.ops.METHODS; absent: direct
    also = ["fp16"]              # coarser precisions that it is tried for, too; an fp32 rung: for all
    priority = 17                # an engine tries the highest first; absent: the number `rung`
    side = true                  # beside the ladder: taken only if named, or if timed to be the fastest
    yardstick = true             # a library does the work: a side rung that is taken only if named
    packs = true                 # needs constant weights: packs them into its own layout, once
    compiled = true              # .py only: Numba compiles its loops (kernels.cpu.compiled)
    reads = ["nchw float32", …]  # .cu only: layouts that x may have (kernels.layouts); READS: index here
    writes = ["nchw float32", …] # .cu only: layouts that y may have; WRITES: index here
    overlaps = true              # .cu only: may begin before the kernel in front ends (cuda/overlap.cuh)
    [defines]                    # CUDA only: compile-time defines, NAME = number, string or boolean
    TILE = 16
    [tune]                       # CUDA only: other values of defines, which `ladder --tune` tries
    TILE = [8, 16, 32]
    [needs]                      # conditions on params without which the rung cannot run; absent: none
    group = 1
    [prefers]                    # conditions, in the same words, to be taken when neither timed nor named
    outputs_min = 65536

kernels.header says which keys `needs` and `prefers` may have. Files that begin with `_`, and `.cuh` files,
are helpers, not rungs. A KernelError that names the file is raised where a header has other keys or values,
where it does not agree with the file's name, or where two files have the same number or the same name.
A file whose header says several precisions is a rung of each, with the same number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernels import confine, layouts, numba_support
from kernels.errors import InputError, KernelError
from kernels.header import Define, needs_of, parse, unmet
from kernels.languages.known import languages
from kernels.nearest import did_you_mean
from kernels.ops import METHODS, OPS, Params
from kernels.precision import FP32, NAMES, narrow
from kernels.precision import defines as type_defines
from kernels.tasks import FILE, TaskParams, learn, record_of, shipped

__all__ = [
    "ROOT",
    "SUFFIX",
    "SUFFIXES",
    "Rung",
    "candidates",
    "code",
    "default",
    "find",
    "needs_of",
    "precisions",
    "rungs",
    "side_rungs",
]

ROOT = Path(__file__).parent
SUFFIX = {"cuda": ".cu", "cpu": ".py"}  # of a file that a user begins
SUFFIXES = {"cuda": (".cu", ".py"), "cpu": (".py",)}
GIVEN = "given"  # the launch shape of a rung whose header says grid and block itself
_PYTHON = ".py"
_LANGUAGE = re.compile(r"#[ \t]*language[ \t]*=")  # in the header of a .py file for CUDA
_FILE = re.compile(r"(\d{2,})_([a-z][a-z0-9_]*)")


@dataclass(frozen=True)
class Rung:
    """One kernel file, and what its header says (see the header's keys in this module's docstring).

    `device`: "cuda" or "cpu". `op`: the operator, one of kernels.ops.OPS. `number`, `name`: from the file's
    name; the number is its place in the ladder. `idea`: one sentence. `path`, `source`: the file and its
    whole text. `user`: it comes from a user's own folder. `side`: it stands beside the ladder. `yardstick`:
    a library's kernels do the work.

    `launch`: a launch shape of kernels.launch ("" on the CPU); `stages`: the kernels that its header says
    itself, and `workspace`, the bytes that they share, where it is "given". `language`: what it is written in
    ("": CUDA C++ on CUDA, Python on the CPU). `compiled`: Numba compiles it. `defines`: compile-time defines;
    `tune`: by define, other values to try. `overlaps`: it may start before the kernel in front has ended, and
    waits for that by itself.

    `needs`: see `refusal`. `prefers`: see `suits`. `priority`: an engine tries the highest first.
    `precision`: what it computes in. `also`: coarser precisions that an engine may take it for. `method`: the
    algorithm. `packs`: it needs weights that are constants. `reads`, `writes`: the layouts that its first
    input and its output may have (kernels.layouts); when the rung runs alone, the first of each."""

    device: str
    op: str
    number: int
    name: str
    idea: str
    launch: str
    defines: Mapping[str, Define] = field(hash=False)
    needs: Mapping[str, Any] = field(hash=False)
    path: Path
    source: str = field(repr=False)
    user: bool = False
    side: bool = False
    precision: str = FP32
    method: str = METHODS[0]
    also: tuple[str, ...] = ()
    yardstick: bool = False
    packs: bool = False
    overlaps: bool = False
    compiled: bool = False
    priority: int = 0
    language: str = ""
    reads: tuple[str, ...] = (layouts.PLAIN,)
    writes: tuple[str, ...] = (layouts.PLAIN,)
    tune: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)
    prefers: Mapping[str, Any] = field(default_factory=dict, hash=False)
    stages: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    workspace: int | str = 0

    @property
    def label(self) -> str:
        """Operator, number and name, for people to read: "conv 04 shared_tiles"."""
        return f"{self.op} {self.number:02d} {self.name}"

    @property
    def by_default(self) -> bool:
        """Whether an engine may take this rung when it was neither named nor timed: one of the ladder, and
        not a user's."""
        return not (self.side or self.user)

    def in_layouts(self, reads: str = layouts.PLAIN, writes: str = layouts.PLAIN) -> Rung:
        """The same rung, with the defines that make it read and write these layouts. Raises ValueError for a
        layout that is not one of its own."""
        chosen = {}
        if self.reads != (layouts.PLAIN,) or reads != layouts.PLAIN:
            chosen["READS"] = self.reads.index(reads)
        if self.writes != (layouts.PLAIN,) or writes != layouts.PLAIN:
            chosen["WRITES"] = self.writes.index(writes)
        if not any(chosen.values()):
            return self
        return replace(self, defines=MappingProxyType({**self.defines, **chosen}))

    @property
    def read_layout(self) -> str:
        """The layout of its first input, by its defines (see `in_layouts`)."""
        return self.reads[int(self.defines.get("READS", 0))]

    @property
    def written_layout(self) -> str:
        """The layout of its output, by its defines (see `in_layouts`)."""
        return self.writes[int(self.defines.get("WRITES", 0))]

    def suits(self, params: Params) -> bool:
        """Whether params meet all conditions of `prefers`. If not, an engine takes the rung only where it was
        timed to be the fastest or is named."""
        return all(unmet(key, value, params, None) is None for key, value in self.prefers.items())

    def refusal(
        self, params: Params, capability: tuple[int, int] | None = None, here: bool = True
    ) -> str | None:
        """Why this rung cannot run `params`, as a sentence; None where it can. capability: compute capability
        of the GPU, such as (9, 0); None: not checked. here: it is also a reason that Numba or the language
        is not installed on this machine."""
        if params.op != self.op:
            return f"{self.label} is no kernel for {params.op}"
        for key, value in ({"dtype": list(params.usual_dtypes)} | dict(self.needs)).items():
            if reason := unmet(key, value, params, capability):
                return f"{self.label} {reason}"
        if not here:
            return None
        if self.compiled and (reason := numba_support.unavailable()):
            return f"{self.label} is compiled by Numba: {reason}"
        if self.language and (reason := languages()[self.language].unavailable()):
            return f"{self.label} {reason}"
        return None


def rungs(
    device: str,
    op: str,
    extra_dirs: Sequence[Path] = (),
    broken: list[KernelError] | None = None,
) -> tuple[Rung, ...]:
    """All rungs of `op` on `device` ("cuda" or "cpu"), side rungs and users' rungs included, by number.

    extra_dirs: folders of the user's own kernels. Such a folder has `NN_name` files of any operator, or
    sub-folders `<op>/` or `<device>/<op>/` of them. A file is read again when it has changed. Raises
    InputError for an unknown op or a folder that does not exist; KernelError, which names the file, for a
    file that breaks a rule of this module. broken: a list; errors of users' files are appended to it instead
    of raised, and those files are left out (None: they are raised).
    """
    no_tasks: list[InputError] | None = None if broken is None else []
    learn(extra_dirs, no_tasks)
    if broken is not None:
        broken += [KernelError(str(error)) for error in no_tasks or ()]
    record = record_of(op)
    if not issubclass(record, TaskParams):
        ladder = _rungs_in(device, op, ROOT / device / op, user=False, mixed=False)
    elif op in shipped():
        ladder = _rungs_in(device, op, record.task.folder, user=False, mixed=True)
    else:  # the folder is among the user's
        ladder = []
    for extra in extra_dirs:
        folder = Path(extra)
        if not folder.is_dir():
            raise InputError(f"the folder of your own kernels {folder} does not exist")
        ladder += _rungs_in(device, op, folder, user=True, mixed=True, broken=broken)
        ladder += _rungs_in(device, op, folder / op, user=True, mixed=False, broken=broken)
        ladder += _rungs_in(device, op, folder / device / op, user=True, mixed=False, broken=broken)
    if extra_dirs:
        ladder = list({(rung.path, rung.precision): rung for rung in ladder}.values())
    ladder = _without_duplicates(ladder, broken)
    return tuple(sorted(ladder, key=lambda rung: (rung.number, rung.user, NAMES.index(rung.precision))))


def find(
    device: str,
    op: str,
    name_or_number: str | int,
    extra_dirs: Sequence[Path] = (),
    broken: list[KernelError] | None = None,
    precision: str = "",
) -> Rung:
    """The rung of this name or number: "tiled", 3 or "3". extra_dirs, broken: see `rungs`. precision: which
    of several of this number is meant, the first where none computes in it. Raises as `rungs`, and InputError
    where there is no such rung; the message says which device has one of that name, or else which name is
    nearest."""
    ladder = rungs(device, op, extra_dirs, broken)
    wanted = str(name_or_number)
    found = [r for r in ladder if r.name == wanted or (wanted.isdecimal() and r.number == int(wanted))]
    if found:
        return next((rung for rung in found if rung.precision == precision), found[0])
    known = ", ".join(f"{rung.number} {rung.name}" for rung in ladder) or "none"
    elsewhere = [
        other
        for other in SUFFIX
        if other != device and any(rung.name == wanted for rung in rungs(other, op, extra_dirs, broken=[]))
    ]
    hint = (
        f" (there is one on {elsewhere[0]})" if elsewhere else did_you_mean(wanted, [r.name for r in ladder])
    )
    own = "" if extra_dirs else "; where it is a kernel of your own, name its folder with --kernels"
    raise InputError(f"no rung {wanted!r} of {op} on {device}{hint}; there are: {known}{own}")


def code(path: Path, op: str, **defines: int) -> Rung:
    """A Rung made of a CUDA file of this program that is no rung, so that it can be compiled like one. It has
    no header; defines: its compile-time defines."""
    nothing = MappingProxyType[str, Any]({})
    text = path.read_text(encoding="utf-8")
    return Rung("cuda", op, 0, path.stem, "", "", MappingProxyType(defines), nothing, path, text)


def default(
    device: str,
    params: Params,
    capability: tuple[int, int] | None = None,
    precision: str = FP32,
    weights_known: bool = True,
) -> Rung:
    """The rung that an engine takes for these params when none was timed or named: the first of `candidates`
    that can run them (`refusal`) and is meant for them (`suits`). A rung that would lose digits comes last
    (Params.loses_digits). capability: as of Rung.refusal. Raises KernelError where there is none, with the
    reason of every rung."""
    reasons = []
    able = candidates(device, params.op, precision, weights_known)
    for rung in sorted(able, key=lambda rung: params.loses_digits(rung.method)):
        reason = rung.refusal(params, capability)
        if reason is None and rung.suits(params):
            return rung
        reasons.append(reason or f"{rung.label} is meant for others")
    raise KernelError(
        f"no {device} kernel for this {params.op}: " + ("; ".join(reasons) or "there is no rung at all")
    )


def candidates(device: str, op: str, precision: str = FP32, weights_known: bool = True) -> tuple[Rung, ...]:
    """The rungs of the ladder that an engine may take untimed, the best guess first; whether they can run
    some params is not checked. First those of this precision, then those that have it in `also`, then those
    of fp32; within each group the highest priority first. No side rungs, no users' rungs. weights_known:
    whether the weights are constants; if not, rungs that pack weights are left out."""
    return _for_precision([r for r in rungs(device, op) if r.by_default], precision, weights_known)


def side_rungs(device: str, op: str, precision: str = FP32, weights_known: bool = True) -> tuple[Rung, ...]:
    """The side rungs that an engine may take if they were timed to be the fastest, in the order of
    `candidates`. Left out are users' rungs, those of a library (`yardstick`) and those in a `language`, which
    must be installed."""
    ours = [r for r in rungs(device, op) if r.side and not (r.user or r.yardstick or r.language)]
    return _for_precision(ours, precision, weights_known)


def _for_precision(ours: Sequence[Rung], precision: str, weights_known: bool) -> tuple[Rung, ...]:
    """Those of these rungs that serve this precision, in the order that `candidates` describes."""
    first = sorted(ours, key=lambda rung: (rung.priority, rung.number), reverse=True)
    fit = [rung for rung in first if weights_known or not rung.packs]
    exact = [rung for rung in fit if rung.precision == precision]
    finer = [rung for rung in fit if precision in rung.also]
    return (*exact, *finer, *(rung for rung in fit if rung.precision == FP32 != precision))


def precisions(device: str) -> tuple[str, ...]:
    """The names of all precisions that some rung of the device computes in, from the finest to the
    coarsest."""
    return tuple(name for name in NAMES if offers(device, name))


def offers(device: str, precision: str) -> bool:
    """Whether some rung of the device computes in this precision. Stops reading at the first that does."""
    return any(rung.precision == precision for op in OPS for rung in rungs(device, op))


def _rungs_in(
    device: str,
    op: str,
    folder: Path,
    user: bool,
    mixed: bool,
    broken: list[KernelError] | None = None,
) -> list[Rung]:
    """The rungs of one folder. mixed: it holds rungs of several operators, and perhaps Python files that are
    no rungs. The folder is listed each time, which is quick, so that changes are seen."""
    rungs_here = []
    for name, entry in _files_with_suffix(folder, SUFFIXES[device]):
        python = name.endswith(_PYTHON)
        beside = mixed or (python and (folder / FILE).is_file())  # a reference, in a task's folder
        if name.startswith("_") or (beside and python and not name[0].isdigit()):
            continue
        try:
            stat = entry.stat()
            if (
                (user or mixed)
                and python
                and _for_cuda(entry.path, stat.st_ino, stat.st_mtime_ns) != (device == "cuda")
            ):
                continue
            found = _parse_file(device, entry.path, user, stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if not mixed and found[0].op != op:
                raise KernelError(
                    f"{entry.path}: op is {found[0].op!r} in the header, but the file lies in the folder "
                    f"{op}/"
                )
        except FileNotFoundError:  # an editor that replaces the file on saving
            continue
        except KernelError as error:
            if broken is None:
                raise
            broken.append(error)
            continue
        rungs_here += [rung for rung in found if rung.op == op]
    return rungs_here


def is_rung_file(device: str, name: str, text: str) -> bool:
    """Whether a user's file can be a rung for the device: by its suffix and, if it is Python, by whether its
    header names a language. name: the file's name; text: its content."""
    if not name.endswith(SUFFIXES[device]):
        return False
    return not name.endswith(_PYTHON) or _names_language(text) == (device == "cuda")


def _names_language(text: str) -> bool:
    """Whether the header of a Python file has the key `language`, as rungs for CUDA have."""
    for line in text.lstrip("\ufeff").splitlines():
        if not line.startswith("#"):
            return False
        if _LANGUAGE.match(line):
            return True
    return False


@lru_cache(maxsize=1024)
def _for_cuda(place: str, inode: int, mtime_ns: int) -> bool:
    """Whether a Python file is for CUDA. A file that cannot be read is not: the CPU's ladder reports it."""
    try:
        return _names_language(Path(place).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return False


def _files_with_suffix(folder: Path, suffix: tuple[str, ...]) -> list[tuple[str, os.DirEntry[str]]]:
    """The files of a folder with this suffix, by name; none if it cannot be listed."""
    try:
        with os.scandir(os.path.abspath(folder)) as entries:
            return sorted((entry.name, entry) for entry in entries if entry.name.endswith(suffix))
    except OSError:
        return []


def _without_duplicates(found: Sequence[Rung], broken: list[KernelError] | None) -> list[Rung]:
    """The rungs whose number and name no earlier rung has; this program's come before users'. Others are
    errors: raised, or appended to `broken`."""
    numbers: dict[int, Rung] = {}
    names: dict[str, Rung] = {}
    free = max((rung.number for rung in found), default=0) + 1
    unique = []
    for rung in sorted(found, key=lambda rung: (rung.user, rung.number)):  # those of a file stay in order
        reason = ""
        if (twin := numbers.get(rung.number)) and twin.path != rung.path:
            reason = f"rung {rung.number} of {rung.op} is already {twin.path}; {free:02d} is free"
        elif twin := names.get(rung.name):
            reason = f"the name {rung.name!r} is already taken by {twin.path}"
        if not reason:
            numbers[rung.number] = names[rung.name] = rung
            unique.append(rung)
        elif broken is None or not rung.user:
            raise KernelError(f"{rung.path}: {reason}")
        else:
            broken.append(KernelError(f"{rung.path}: {reason}"))
    return unique


@lru_cache(maxsize=1024)
def _parse_file(
    device: str, place: str, user: bool, inode: int, mtime_ns: int, size: int
) -> tuple[Rung, ...]:
    """A rung for each precision that a file says. inode, mtime_ns and size are arguments so that a changed
    file is read again."""
    path = Path(place).resolve()
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    header = parse(path, device, source)
    stem = _FILE.fullmatch(path.stem)
    if stem is None:
        raise KernelError(
            f"{path}: a rung's file is called NN_name{path.suffix}, such as 04_tiled{path.suffix}"
        )
    if (int(stem[1]), stem[2]) != (header["rung"], header["name"]):
        raise KernelError(
            f"{path}: the header says rung {header['rung']} {header['name']!r}, "
            f"the file's name {int(stem[1])} {stem[2]!r}"
        )
    said = header.get("precision", FP32)
    several = said if isinstance(said, list) else [said]
    rung = Rung(
        device=device,
        op=header["op"],
        number=header["rung"],
        name=header["name"],
        idea=header["idea"],
        launch=header["launch"] if isinstance(header["launch"], str) else GIVEN,
        stages=() if isinstance(header["launch"], str) else tuple(header["launch"]),
        workspace=header.get("workspace", 0),
        defines=MappingProxyType(header["defines"]),
        needs=MappingProxyType(header["needs"]),
        path=path,
        source=source,
        user=user,
        side=header.get("side", False) or header.get("yardstick", False),
        language=header.get("language", ""),
        precision=several[0],
        method=header.get("method", METHODS[0]),
        also=tuple(header.get("also", ())),
        yardstick=header.get("yardstick", False),
        packs=header.get("packs", False),
        overlaps=header.get("overlaps", False),
        compiled=header.get("compiled", False),
        priority=header.get("priority", header["rung"]),
        reads=tuple(header.get("reads", (layouts.PLAIN,))),
        writes=tuple(header.get("writes", (layouts.PLAIN,))),
        tune=MappingProxyType(header["tune"]),
        prefers=MappingProxyType(header["prefers"]),
    )
    return tuple(_of_precision(rung, name) for name in several)


def _of_precision(rung: Rung, name: str) -> Rung:
    """The rung of the same file that computes in this precision, whose type of 16 bits stands in the place of
    the first's: in its name ("nhwc_fp16" becomes "nhwc_bf16", "columns" "columns_bf16"), in its idea, in its
    layouts, and in what half.cuh makes of its defines."""
    if name == rung.precision:
        return rung
    mine, other = narrow(rung.precision), narrow(name)
    own = rung.name.replace(rung.precision, name)
    return replace(
        rung,
        precision=name,
        name=own if own != rung.name else f"{own}_{name}",
        idea=rung.idea.replace(mine, other),
        defines=MappingProxyType({**rung.defines, **type_defines(other)}),
        reads=tuple(layout.replace(mine, other) for layout in rung.reads),
        writes=tuple(layout.replace(mine, other) for layout in rung.writes),
        also=tuple(coarser for coarser in rung.also if NAMES.index(coarser) > NAMES.index(name)),
    )


HEADERS = Path(__file__).parent / "cuda"
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Header:
    """A C++ header file (not the TOML header of a rung). name: as the `#include` line has it; path: of the
    file; text: its content."""

    name: str
    path: Path
    text: str


def headers(rung: Rung) -> tuple[Header, ...]:
    """The header files that a rung's file includes by `#include "…"`, also indirectly: each once, in a fixed
    order. A header is searched first in the folder of the file that includes it, then in HEADERS; a
    stranger's (kernels.confine.walled) nowhere else, whatever its name. One that is not found is left out;
    the compiler reports it."""
    included: dict[Path, Header] = {}
    only = {rung.path.parent.resolve(), HEADERS} if rung.user and confine.walled() else None
    queue = [(rung.source, rung.path.parent)]
    while queue:
        text, folder = queue.pop()
        for name in _INCLUDE.findall(text):
            path = next((p for d in (folder, HEADERS) if (p := d / name).is_file()), None)
            if path is None or path in included:
                continue
            if only is not None and path.resolve().parent not in only:
                continue
            included[path] = Header(name, path, path.read_text(encoding="utf-8"))
            queue.append((included[path].text, path.parent))
    return tuple(included.values())
