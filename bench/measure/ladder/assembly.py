"""What a CUDA rung is compiled to: its PTX, and its SASS where NVIDIA's disassembler is, each with the line
of the rung's file that an instruction is of. Compiled by NVRTC, so no GPU is needed; nothing of it is run.

As a process (`bench.questions.ladder_questions.assembly_command`): one AssemblyQuestion on standard input,
one AssemblyAnswer on what was standard output, and the end.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.measure.ladder import compiled
from bench.measure.ladder.entrants import job_params
from bench.measure.parent_channel import ParentChannel, read_line
from bench.questions import ladder_plan
from bench.questions.ladder_questions import AssemblyAnswer, AssemblyQuestion, CountsQuestion, Listing
from bench.results.messages import Done
from kernels import launch, nvrtc, registry
from kernels.errors import KernelscopeError
from kernels.registry import Rung

LIMIT_S = 60.0  # for the disassembler
TOOLS = ("nvdisasm", "cuobjdump")
NO_TOOL = (
    "SASS takes nvdisasm or cuobjdump, and neither is here: NVIDIA's CUDA toolkit brings both, and so does "
    "`conda install -c nvidia cuda-nvdisasm`; then have it in PATH"
)
NO_LINES = "cuobjdump does not say which line an instruction is of; nvdisasm does"
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:,.*?inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"(.*)"')
_SASS_LINE = re.compile(r'"([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*$")  # its address, what it does
_ENCODING = re.compile(r"\s*/\* 0x[0-9a-f]{16} \*/\s*$")

Place = tuple[int, int, int]  # file, line, column


def main() -> int:
    channel = ParentChannel()
    try:
        asked = msgspec.json.decode(read_line(0), type=AssemblyQuestion)
    except msgspec.DecodeError as error:
        channel.say(Done(reason=f"the process was asked what it cannot read ({error})"))
        return 2
    channel.say(answer(asked))
    return 0


def rung_of(asked: AssemblyQuestion | CountsQuestion) -> Rung:
    """The rung that is asked for. Raises KernelscopeError where there is none, or no compiler."""
    compiled.check_compiler()
    job = asked.job
    ladder_plan.op_of(job.op)
    folders = [Path(folder) for folder in job.kernel_dirs if Path(folder).is_dir()]
    return registry.find(job.device, job.op, asked.rung, folders, broken=[])


def answer(asked: AssemblyQuestion) -> AssemblyAnswer:
    """What there is; an error of ours is its `error`."""
    try:
        job, rung = asked.job, rung_of(asked)
        (arch,) = compiled.architectures([asked.arch]) if asked.arch else (compiled.meant_for(rung),)
        how = launch.launch(job_params(job), rung)
        text, cubin = nvrtc.assembly(rung, arch, how.defines)
        found, missing = [ptx(text, rung.path.name)], NO_TOOL
        if tool := disassembler():
            listing, missing = sass(tool, cubin, rung.path.name)
            found += [listing] if listing is not None else []
        return AssemblyAnswer(rung=asked.rung, arch=arch, listings=tuple(found), missing=missing)
    except KernelscopeError as error:
        return AssemblyAnswer(rung=asked.rung, error=str(error))


def ptx(text: str, name: str) -> Listing:
    """PTX without its table of lines, which is told instead; name: of the rung's file. Of what was inlined
    from a header the line of the file that called it counts."""
    lines = text.rstrip("\n").split("\n")
    files = {int(m[1]): Path(m[2]).name for line in lines if (m := _FILE.match(line))}
    own = {number for number, file in files.items() if file == name}
    called: dict[Place, Place] = {}
    for line in lines:
        if (m := _LOC.match(line)) and m[4]:
            called[_place(m, 1)] = _place(m, 4)
    shown: list[tuple[str, int]] = []
    at = 0
    for line in lines:
        if m := _LOC.match(line):
            at = _own_line(_place(m, 1), own, called)
            continue
        if _FILE.match(line):
            continue
        if re.match(r"\s*\.section\s+\.debug", line):
            break  # nothing but the names of that table follows
        code = line.strip()
        instruction = bool(code) and not code.startswith((".", "$", "//", "{", "}", ")"))
        if code == "}":
            at = 0
        shown.append((line, at if instruction else 0))
    return _listing("PTX", shown)


def _listing(name: str, shown: list[tuple[str, int]]) -> Listing:
    """Of lines with the line of the source that each is of (0: of none), without empty ones at the end."""
    while shown and not shown[-1][0].strip():
        shown.pop()
    return Listing(
        name=name,
        text="\n".join(line for line, _ in shown),
        lines=tuple(number for _, number in shown),
    )


def _place(match: re.Match[str], first: int) -> Place:
    return int(match[first]), int(match[first + 1]), int(match[first + 2])


def _own_line(place: Place, own: set[int], called: dict[Place, Place]) -> int:
    """The line of the rung's file that a place is of, or that it was inlined at; 0 where there is none."""
    seen: set[Place] = set()
    while place not in seen:
        if place[0] in own:
            return place[1]
        seen.add(place)
        place = called.get(place, place)
    return 0


def disassembler() -> Path | None:
    """The first of TOOLS that there is: in PATH, in a toolkit, or in a package of NVIDIA's."""
    for tool in TOOLS:
        if found := shutil.which(tool) or shutil.which(tool, path=os.pathsep.join(map(str, _folders()))):
            return Path(found)
    return None


def _folders() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if root := os.environ.get(name):
            yield Path(root) / "bin"
    yield Path("/usr/local/cuda/bin")
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(root).glob("*/bin"))


def sass(tool: Path, cubin: bytes, name: str) -> tuple[Listing | None, str]:
    """What a disassembler makes of a cubin, and what is missing of it."""
    lined = tool.stem == "nvdisasm"
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
        file = Path(folder) / "rung.cubin"
        file.write_bytes(cubin)
        arguments = ("--print-code", "--print-line-info-inline") if lined else ("-sass",)
        try:
            run = subprocess.run(
                [str(tool), *arguments, str(file)],
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, f"{tool} could not be run: {error}"
    if run.returncode:
        said = run.stderr.decode(errors="replace").strip().splitlines()
        return None, f"{tool} could not read the kernel: {said[-1] if said else run.returncode}"
    text = run.stdout.decode(errors="replace")
    return sass_listing(text.split("\n"), name), "" if lined else NO_LINES


def sass_listing(lines: Sequence[str], name: str) -> Listing:
    """A disassembler's text without its remarks on lines, which are told instead, and without encodings."""
    shown: list[tuple[str, int]] = []
    at, fresh = 0, False
    for line in lines:
        if "//##" in line:
            own = [int(number) for file, number in _SASS_LINE.findall(line) if Path(file).name == name]
            if not fresh:
                at, fresh = 0, True
            at = own[-1] if own else at
            continue
        fresh = False
        bare = _ENCODING.sub("", line)
        code = bare.strip()
        if not code and (bare != line or not shown or not shown[-1][0].strip()):
            continue
        if m := _INSTRUCTION.match(bare):
            shown.append((f"{m[1]}  {m[2]}", at))
        else:
            shown.append((code, 0))
    return _listing("SASS", shown)


if __name__ == "__main__":
    sys.exit(main())
