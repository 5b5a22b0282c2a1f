"""What is to be known of an execution provider of ONNX Runtime beyond the CPU's and CUDA's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Provider:
    """backend: its name here. name: ONNX Runtime's; library: what its file is named for. settings: (name,
    value) pairs for it, by the precision that they are for ("": all). graph, stream, device: its names for
    those settings ("": it has none). loads: modules that load what it needs; behind: providers for what it
    does not run; helps: what would keep it from falling back."""

    backend: str
    name: str
    library: str
    settings: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    graph: str = ""
    stream: str = ""
    device: str = ""
    loads: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    helps: str = ""

    def of(self, precision: str) -> dict[str, str]:
        return {
            name: value for when, pairs in self.settings if when in ("", precision) for name, value in pairs
        }
