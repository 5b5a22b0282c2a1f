"""On what a run was measured, as records: the machine, what it can run, the models."""

from __future__ import annotations

import msgspec

from bench.results.names import check_name


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all records."""


class BackendInfo(Record, frozen=True):
    """A backend as seen on the machine of the run; unavailable is the reason, or "". variant_of: the backend
    that it is in another configuration ("": it stands for itself); such a one runs where it is asked for, and
    so does a rival. swaps: it is that backend with kernels in the place of nodes; invited: the two take part
    with such kernels though nobody named them. get: how it comes to a machine; untried: what is to be known
    of one that nobody ran."""

    name: str
    device: str
    precisions: tuple[str, ...]
    reference: str
    unavailable: str = ""
    variant_of: str = ""
    rival: bool = False
    swaps: bool = False
    invited: bool = False
    get: str = ""
    untried: str = ""


class Environment(Record, frozen=True):
    """The machine and the software of a run, for the footer of every chart. gpu_fp32_flops_per_s: what all
    cores of the GPU do at their highest clock, a multiply-add counted as two (0: not known)."""

    machine: str = ""
    os: str = ""
    python: str = ""
    cpu: str = ""
    cores: int = 0
    memory_nbytes: int = 0
    gpu: str = ""
    gpu_uuid: str = ""
    gpu_fp32_flops_per_s: float = 0.0
    driver: str = ""
    cuda: str = ""
    packages: dict[str, str] = {}
    backends: tuple[BackendInfo, ...] = ()
    kernelscope: str = ""


class ModelInfo(Record, frozen=True):
    """A model of the run: its name as in the cases, title, data set, SHA-256, parameters and FLOPs an image.
    labels: where the order of its classes is from; image: what is done to an image, in words. notes: what was
    taken for what the file leaves open, and what of it is left out, in sentences."""

    name: str
    title: str = ""
    path: str = ""
    dataset: str = ""
    preprocess: str = ""
    sha256: str = ""
    parameters: int = 0
    flops_per_image: int = 0
    labels: str = ""
    image: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name("data set", self.dataset.partition(":")[0])
