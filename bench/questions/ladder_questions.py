"""What is asked of a ladder before it is run: which nodes a model has, which rungs there are, what they say.

A worker started with DESCRIBE answers a LadderQuestion a line by a LadderAnswer, as long as its input is
open; it times nothing. Like bench.results.ladder_records this module reaches nothing but msgspec and that.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.results.ladder_records import Ladder, LadderJob, RungCase
from bench.results.messages import Message
from bench.results.records import Record
from bench.run.watching import TASK_FILE

TASKS = "tasks"  # in the place of a model: the tasks (kernels.tasks), each as a node
# Argument that tells a worker that it will be asked, not given work.
DESCRIBE = "--describe"


def task_at(path: Path) -> Path | None:
    """The folder of the task that a folder, or the file in it, is; None where it is none."""
    folder = path.parent if path.name == TASK_FILE else path
    return folder.absolute() if (folder / TASK_FILE).is_file() else None


class DeviceInfo(Record, frozen=True):
    """A device of the ladder; refused: why it cannot run there ("": it can)."""

    name: str
    refused: str = ""


class LadderQuestion(Record, frozen=True):
    """What the user has chosen; what is "" is chosen by who answers. number: comes back with the answer.

    model: its name or file, or TASKS. node: an ONNX node's name; nodes: of these the one that takes most
    work, where `node` is "" (of a fused layer's). precision: "" for every one that there is. new_in: a folder
    that a template of a kernel for `op` on `device` is written into first. on: the place where it is to be
    run, "" for this machine; devices: what there is of devices on that place.
    """

    number: int
    model: str
    op: str = ""
    node: str = ""
    nodes: tuple[str, ...] = ()
    batch: int = 1
    device: str = ""
    precision: str = ""
    rungs: tuple[str, ...] = ()
    kernel_dirs: tuple[str, ...] = ()
    whole_model: bool = False
    new_in: str = ""
    on: str = ""
    devices: tuple[DeviceInfo, ...] = ()


class NodeInfo(Record, frozen=True):
    """A node of a model that has a ladder; words: its params as one reads them."""

    node: str
    op: str
    words: str
    nodes: tuple[str, ...] = ()
    flops: int = 0


def node_of(job: LadderJob) -> str:
    """What the node of a ladder is called in its questions: a task stands in no model, and is called as its
    sizes are."""
    return job.node or job.title


class RungInfo(Record, frozen=True):
    """A rung as its file has it; headers: the paths of those of ours that it includes, however deep; refused:
    why it cannot run the node chosen ("": it can). template: of a rung of the user's what its file began
    as. whole: no node of a model can take it: it runs a whole net (net), or is of a task."""

    case: RungCase
    path: str
    source: str
    headers: tuple[str, ...] = ()
    refused: str = ""
    template: str = ""
    whole: bool = False
    net: bool = False


class KernelProblem(Record, frozen=True):
    """A file of the user's that is no rung, or a folder that cannot be read, and why. source: the file's
    text, where it has one."""

    path: str
    reason: str
    source: str = ""


class LadderAnswer(Message, frozen=True, tag="ladder_answer"):
    """ladder: ready to be run (None: `error` says why there is none). nodes: those of the model that have a
    ladder, in its order. rungs: all of the ladder's operator, in order, whichever were asked for; precisions:
    what they compute in. to_read: the answer for the device that was asked for, where it cannot run here and
    the ladder is another's: its rungs can be read and compiled. created: the template that was written."""

    number: int
    error: str = ""
    devices: tuple[DeviceInfo, ...] = ()
    nodes: tuple[NodeInfo, ...] = ()
    ladder: Ladder | None = None
    rungs: tuple[RungInfo, ...] = ()
    to_read: LadderAnswer | None = None
    precisions: tuple[str, ...] = ()
    problems: tuple[KernelProblem, ...] = ()
    created: str = ""


class AssemblyQuestion(Record, frozen=True):
    """What a rung of a ladder is compiled to on its work: one line to `assembly_command`'s process. arch: as
    "sm_90"; "" for this machine's GPU, or what the rung asks for."""

    job: LadderJob
    rung: str
    arch: str = ""


class Listing(Record, frozen=True):
    """Code as the machine is given it: "PTX" or "SASS". lines: of each of its lines the line of the rung's
    own file that it is of, 0 where that is none."""

    name: str
    text: str
    lines: tuple[int, ...]


class AssemblyAnswer(Message, frozen=True, tag="assembly"):
    """arch: what it was compiled for; missing: what is not there, why, and what would bring it; error: why
    there is nothing."""

    rung: str
    arch: str = ""
    listings: tuple[Listing, ...] = ()
    missing: str = ""
    error: str = ""


def assembly_command() -> list[str]:
    return [sys.executable, "-P", "-m", "bench.measure.ladder.assembly"]


class CountsQuestion(Record, frozen=True):
    """What each line of a CUDA rung costs on the work of a ladder: one line to `counts_command`'s process."""

    job: LadderJob
    rung: str


class LineCount(Record, frozen=True):
    """What a line of the rung's file has cost in one pass: instructions of warps, branches at which a warp
    was divergent, loads and stores of global memory by warps with the sectors of 32 bytes that they use, and
    wavefronts of shared memory; each beside the fewest that there can be."""

    line: int
    instructions: int = 0
    divergent: int = 0
    requests: int = 0
    sectors: int = 0
    least_sectors: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0


class CountsAnswer(Message, frozen=True, tag="counts"):
    """on: the work that was counted, in words (a small shape where the ladder's takes too long). error: why
    there are none, or what was found wrong with its accesses to memory."""

    rung: str
    on: str = ""
    lines: tuple[LineCount, ...] = ()
    error: str = ""


def counts_command() -> list[str]:
    return [sys.executable, "-P", "-m", "bench.measure.ladder.line_counts"]
