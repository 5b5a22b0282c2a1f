"""The ladder read from its folders: every rung of every operator, described by the header of its own file.

A rung is one file, `<device>/<op>/NN_name.cu` or `.py`; `ls` is the table of contents. A `.py` file is a
rung of the CPU, unless its header names a language of CUDA's (kernels.languages). The header is TOML:
in a `.cu` file the text of the first comment `/* … */`, in a `.py` file the leading lines behind `#`:

    op = "conv"                  # one of kernels.ops.OPS, the folder's name
    rung = 4                     # the number in the file's name
    name = "shared_tiles"        # the name in the file's name
    idea = "One sentence: what this rung does that the one below does not."
    launch = "conv_tiles"        # CUDA only, required: the name of a launch shape of kernels.launch
    language = "triton"          # CUDA in a .py, required: one of kernels.languages
    precision = "tf32"           # what it computes in, of kernels.precision; fp32 where absent
    method = "winograd"          # how, of kernels.ops.METHODS; direct where absent
    also = ["fp16"]              # coarser ones in which an engine tries it, too; one of fp32 in all of them
    priority = 17                # whose turn it is by default, the highest first; `rung` where absent
    side = true                  # beside the ladder: never taken but named, or timed to be the fastest
    yardstick = true             # a library does the work: a side rung that is taken only where it is named
    packs = true                 # it wants constant weights, to lay them out anew, once (pack in a .py)
    compiled = true              # .py only: its loops are compiled by Numba (kernels.cpu.compiled)
    reads = ["nchw float32", …]  # .cu only: how x may lie (kernels.layouts); READS is the place here
    writes = ["nchw float32", …] # .cu only: and how y may: WRITES
    overlaps = true              # .cu only: may begin before the kernel in front ends (cuda/overlap.cuh)
    [defines]                    # CUDA only: compile-time defines, NAME = number, string or boolean
    TILE = 16
    [tune]                       # CUDA only: other values of defines, among which `ladder --tune` searches
    TILE = [8, 16, 32]
    [needs]                      # what params must be for the rung to apply; absent: anything
    group = 1
    [prefers]                    # and for an engine to take it untimed and unnamed, in the same words
    outputs_min = 65536

kernels.header says which keys `needs` may have. Helpers that are no rungs begin with `_` (or are `.cuh`). A
header outside this vocabulary, a name that does not agree with its file, or two files with one number or one
name raise KernelError naming the file.
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

from kernels import layouts, numba_support
from kernels.errors import InputError, KernelError
from kernels.header import NEEDS, Define, parse, unmet
from kernels.languages.known import languages
from kernels.nearest import did_you_mean
from kernels.ops import METHODS, OPS, Params
from kernels.precision import FP32, NAMES

__all__ = [
    "NEEDS",
    "ROOT",
    "SUFFIX",
    "SUFFIXES",
    "Rung",
    "candidates",
    "code",
    "default",
    "find",
    "precisions",
    "rungs",
    "side_rungs",
]

ROOT = Path(__file__).parent
SUFFIX = {"cuda": ".cu", "cpu": ".py"}  # of what a user's own file begins as
SUFFIXES = {"cuda": (".cu", ".py"), "cpu": (".py",)}
_PYTHON = ".py"
_LANGUAGE = re.compile(r"#[ \t]*language[ \t]*=")  # in the header of a .py file for CUDA
_FILE = re.compile(r"(\d{2,})_([a-z][a-z0-9_]*)")


@dataclass(frozen=True)
class Rung:
    """One kernel file. `source` is its whole text, `number` and `name` those of the file's name; `launch`
    names a launch shape of kernels.launch ("" on the CPU). `side`: it stands beside the ladder. `user`: it
    comes from the user's own folder. `prefers`: see `suits`. `precision`: what it computes in, `method`: by
    which way; `also`: coarser ones in which an engine may take it. `yardstick`: a library's kernels do the
    work. `tune`: by define, the values that it may have. `packs`: it wants weights that are known when a
    model is prepared. `overlaps`: its kernels wait themselves for the one in front. `language`: what it is
    written in, "" where that is the device's own. `number` is its place in the story, `priority` whose turn
    it is by default. `reads`, `writes`: how its first input and its output may lie; alone it is given the
    first."""

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

    @property
    def label(self) -> str:
        """The rung in words: "conv 04 shared_tiles"."""
        return f"{self.op} {self.number:02d} {self.name}"

    @property
    def by_default(self) -> bool:
        """Whether an engine may take this rung without being asked to, and without having timed it."""
        return not (self.side or self.user)

    def in_layouts(self, reads: str = layouts.PLAIN, writes: str = layouts.PLAIN) -> Rung:
        """The rung as it is compiled to read and write these layouts. Raises ValueError where it cannot."""
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
        """The layout in which it is compiled to read its first input."""
        return self.reads[int(self.defines.get("READS", 0))]

    @property
    def written_layout(self) -> str:
        """The layout in which it is compiled to write its output."""
        return self.writes[int(self.defines.get("WRITES", 0))]

    def suits(self, params: Params) -> bool:
        """Whether it is meant for such params, so that an engine may take it without timing it."""
        return all(unmet(key, value, params, None) is None for key, value in self.prefers.items())

    def refusal(self, params: Params, capability: tuple[int, int] | None = None) -> str | None:
        """Why this rung cannot run `params` (on a device of compute `capability`, if given), or None."""
        if params.op != self.op:
            return f"{self.label} is no kernel for {params.op}"
        for key, value in ({"dtype": ["float32"]} | dict(self.needs)).items():
            if reason := unmet(key, value, params, capability):
                return f"{self.label} {reason}"
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
    """All rungs of `op` on `device` ("cuda" or "cpu") in order of their numbers, the user's among ours.

    A folder of the user's own holds `NN_name` files of any op, or sub-folders `<op>/` or `<device>/<op>/` of
    them. Files are read again when they change. Raises KernelError naming the file that breaks a rule of this
    module, InputError for an unknown op or a folder that does not exist. With a list `broken`, a file of the
    user's that breaks a rule is left out and its error put there.
    """
    if op not in OPS:
        raise InputError(f"no operator {op!r} in the ladder{did_you_mean(op, OPS)}")
    ladder = _folder(device, op, ROOT / device / op, user=False, mixed=False)
    for extra in extra_dirs:
        folder = Path(extra)
        if not folder.is_dir():
            raise InputError(f"the folder of your own kernels {folder} does not exist")
        ladder += _folder(device, op, folder, user=True, mixed=True, broken=broken)
        ladder += _folder(device, op, folder / op, user=True, mixed=False, broken=broken)
        ladder += _folder(device, op, folder / device / op, user=True, mixed=False, broken=broken)
    if extra_dirs:
        ladder = list({rung.path: rung for rung in ladder}.values())
    ladder = _without_duplicates(ladder, broken)
    return tuple(sorted(ladder, key=lambda rung: (rung.number, rung.user)))


def find(
    device: str,
    op: str,
    name_or_number: str | int,
    extra_dirs: Sequence[Path] = (),
    broken: list[KernelError] | None = None,
) -> Rung:
    """The rung called "tiled", 3 or "3". Raises InputError where there is none, with the device that has one
    of that name, or else the nearest name."""
    ladder = rungs(device, op, extra_dirs, broken)
    wanted = str(name_or_number)
    for rung in ladder:
        if rung.name == wanted or (wanted.isdecimal() and rung.number == int(wanted)):
            return rung
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
    """A CUDA file of ours that is no rung, as a Rung for the compiler."""
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
    """The first of `candidates` that applies. Raises KernelError with the reason of every rung where none
    does."""
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
    """The rungs that an engine may take by default, best guess first: ours of this precision from the highest
    priority down, then those that also serve it (`also`), then those of fp32; no side rungs. weights_known:
    whether the weights are constants, which rungs that pack them need."""
    return _fitting([r for r in rungs(device, op) if r.by_default], precision, weights_known)


def side_rungs(device: str, op: str, precision: str = FP32, weights_known: bool = True) -> tuple[Rung, ...]:
    """Side rungs of ours that an engine may take where they were timed to be the fastest: none of a library,
    and none in a language that must be installed. In the order of `candidates`."""
    ours = [r for r in rungs(device, op) if r.side and not (r.user or r.yardstick or r.language)]
    return _fitting(ours, precision, weights_known)


def _fitting(ours: Sequence[Rung], precision: str, weights_known: bool) -> tuple[Rung, ...]:
    first = sorted(ours, key=lambda rung: (rung.priority, rung.number), reverse=True)
    fit = [rung for rung in first if weights_known or not rung.packs]
    exact = [rung for rung in fit if rung.precision == precision]
    finer = [rung for rung in fit if precision in rung.also]
    return (*exact, *finer, *(rung for rung in fit if rung.precision == FP32 != precision))


def precisions(device: str) -> tuple[str, ...]:
    """The precisions of a device's rungs, from the strictest to the coarsest."""
    return tuple(name for name in NAMES if offers(device, name))


def offers(device: str, precision: str) -> bool:
    """Whether any rung of a device computes in this precision; reads no more folders than needed."""
    return any(rung.precision == precision for op in OPS for rung in rungs(device, op))


def _folder(
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
    for name, entry in _listed(folder, SUFFIXES[device]):
        python = name.endswith(_PYTHON)
        if name.startswith("_") or (mixed and python and not name[0].isdigit()):
            continue
        try:
            stat = entry.stat()
            if user and python and _for_cuda(entry.path, stat.st_ino, stat.st_mtime_ns) != (device == "cuda"):
                continue
            rung = _read(device, entry.path, user, stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if not mixed and rung.op != op:
                raise KernelError(
                    f"{entry.path}: op is {rung.op!r} in the header, but the file lies in the folder {op}/"
                )
        except FileNotFoundError:  # an editor that replaces the file on saving
            continue
        except KernelError as error:
            if broken is None:
                raise
            broken.append(error)
            continue
        if rung.op == op:
            rungs_here.append(rung)
    return rungs_here


def is_rung_file(device: str, name: str, text: str) -> bool:
    """Whether a file of the user's can be a rung of the device: by its suffix and, for Python, its header."""
    if not name.endswith(SUFFIXES[device]):
        return False
    return not name.endswith(_PYTHON) or _names_language(text) == (device == "cuda")


def _names_language(text: str) -> bool:
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


def _listed(folder: Path, suffix: tuple[str, ...]) -> list[tuple[str, os.DirEntry[str]]]:
    """The files of a folder with this suffix, by name; none if it cannot be listed."""
    try:
        with os.scandir(os.path.abspath(folder)) as entries:
            return sorted((entry.name, entry) for entry in entries if entry.name.endswith(suffix))
    except OSError:
        return []


def _without_duplicates(found: Sequence[Rung], broken: list[KernelError] | None) -> list[Rung]:
    """The rungs whose number and name no other rung has; ours come before the user's."""
    numbers: dict[int, Rung] = {}
    names: dict[str, Rung] = {}
    free = max((rung.number for rung in found), default=0) + 1
    unique = []
    for rung in sorted(found, key=lambda rung: (rung.user, rung.number)):
        reason = ""
        if twin := numbers.get(rung.number):
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
def _read(device: str, place: str, user: bool, inode: int, mtime_ns: int, size: int) -> Rung:
    """Parse one file. inode, mtime_ns and size are arguments so that a changed file is read again."""
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
    return Rung(
        device=device,
        op=header["op"],
        number=header["rung"],
        name=header["name"],
        idea=header["idea"],
        launch=header.get("launch", ""),
        defines=MappingProxyType(header["defines"]),
        needs=MappingProxyType(header["needs"]),
        path=path,
        source=source,
        user=user,
        side=header.get("side", False) or header.get("yardstick", False),
        language=header.get("language", ""),
        precision=header.get("precision", FP32),
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


HEADERS = Path(__file__).parent / "cuda"
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Header:
    """A header as a file includes it (name), where it lies, and its text."""

    name: str
    path: Path
    text: str


def headers(rung: Rung) -> tuple[Header, ...]:
    """The headers of ours that a rung's file includes, also indirectly, each once, in a fixed order. A header
    is looked for beside the file that includes it, then among ours. A missing one is left for the compiler to
    report."""
    included: dict[Path, Header] = {}
    queue = [(rung.source, rung.path.parent)]
    while queue:
        text, folder = queue.pop()
        for name in _INCLUDE.findall(text):
            path = next((p for d in (folder, HEADERS) if (p := d / name).is_file()), None)
            if path is None or path in included:
                continue
            included[path] = Header(name, path, path.read_text(encoding="utf-8"))
            queue.append((included[path].text, path.parent))
    return tuple(included.values())
