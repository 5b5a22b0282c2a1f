"""What a caller may ask of a session of any backend."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DISABLED = "disabled"
OPTIMIZATION = ("all", "extended", "basic", DISABLED)


@dataclass(frozen=True)
class Configuration:
    """How ONNX Runtime is configured. provider_options: (name, value) pairs for the execution provider, which
    override the backend's own. fused_conv: the model is first rewritten by engine.ort.fused_conv.
    optimization: ONNX Runtime's level of graph optimisation, one of OPTIMIZATION."""

    provider_options: tuple[tuple[str, str], ...] = ()
    fused_conv: bool = False
    optimization: str = "all"

    @property
    def words(self) -> str:
        """ "cudnn_conv_algo_search=HEURISTIC prefer_nhwc=1 FusedConv"; "defaults" where nothing is set."""
        parts = [f"{name}={value}" for name, value in self.provider_options]
        parts += ["FusedConv"] if self.fused_conv else []
        parts += [f"graph_optimization={self.optimization}"] if self.optimization != "all" else []
        return " ".join(parts) or "defaults"


def cuda() -> tuple[Configuration, ...]:
    """Every combination of the CUDA provider's options that change the time of a net. The first is the
    default of engine.backends.ort_cuda."""
    searches, flags = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT"), ("0", "1")
    return tuple(
        Configuration(
            (("cudnn_conv_algo_search", search), ("prefer_nhwc", nhwc), ("fuse_conv_bias", bias)), fused
        )
        for fused, bias, nhwc, search in itertools.product((False, True), flags, flags, searches)
    )


@dataclass(frozen=True)
class Options:
    """What a caller may ask of a session beyond model, batch and precision.

    threads: CPU threads for ONNX Runtime and BLAS alike (None: one a physical core).
    cuda_graph: replay the forward pass as one CUDA graph where the backend can.
    joins: two operators may be one step where that is faster (False: each has a step of its own, but for what
    is fused on every device).
    early: let kernels begin before the one in front has ended, where a backend can and it is faster; their
    times then overlap.
    one_kernel: let a run of steps be one kernel, where a backend can and it was timed to be faster (it is not
    without `tuned` and `cuda_graph`).
    layouts: in which tensors between steps travel, a word of engine.planning.layouts.WAYS ("": as was timed
    to be the fastest on this machine, where it was, else as the chosen kernels allow).
    layout_rungs: with `layouts`, rungs by the places of steps that have them in their layouts in place of
    their own, where they can and no rung was named (engine.planning.layouts.with_rungs): to find those
    that are kept.
    turns: steps that hand on large tensors may take turns, some images at a time, where a backend can.
    rungs: chosen rung (its name) by node name; others get the backend's default.
    mix: in a mixed precision, what each product computes in, by the name of its node; the others in fp32
    (None: as was found to be the fastest within the budget on this machine, where it was).
    tuned: the default is the rung that was timed to be the fastest on this machine, where one was.
    kernel_dirs: folders of the user's own rungs.
    anyway: one_kernel, faster or not, wherever it can be had (facts["one_kernel"] says what became of it).
    compiled: a CPU's kernels may be those that a compiler makes fast (False: NumPy's alone); with one_kernel
    those that follow each other are one call.
    provider_options: passed to ONNX Runtime's execution provider.
    ort: how ONNX Runtime is configured (None: its backend's own way).
    """

    threads: int | None = None
    cuda_graph: bool = True
    joins: bool = True
    early: bool = True
    one_kernel: bool = True
    layouts: str = ""
    layout_rungs: Mapping[int, str] = field(default_factory=dict)
    turns: bool = True
    rungs: Mapping[str, str] = field(default_factory=dict)
    mix: Mapping[str, str] | None = None
    tuned: bool = True
    kernel_dirs: tuple[Path, ...] = ()
    anyway: bool = False
    compiled: bool = True
    provider_options: Mapping[str, str] = field(default_factory=dict)
    ort: Configuration | None = None
