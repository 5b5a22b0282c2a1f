"""How ONNX Runtime may be configured beyond its defaults: what a sweep for its best varies."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

OPTIMIZATION = ("all", "extended", "basic", "disabled")


@dataclass(frozen=True)
class Configuration:
    """provider_options: (name, value) pairs for the execution provider, over the backend's own. fused_conv:
    the model is rewritten by engine.ort.fused_conv first. optimization: ONNX Runtime's level of graph
    optimisation, one of OPTIMIZATION."""

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
    """The CUDA provider's options that bear on a net's time, in every combination. The first is what
    engine.backends.ort_cuda does untold."""
    searches, flags = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT"), ("0", "1")
    return tuple(
        Configuration(
            (("cudnn_conv_algo_search", search), ("prefer_nhwc", nhwc), ("fuse_conv_bias", bias)), fused
        )
        for fused, bias, nhwc, search in itertools.product((False, True), flags, flags, searches)
    )
