"""The rungs that a job names for nodes, "[MODEL:]NODE" → "[DEVICE/]RUNG", as a model on a device takes them.

Without a model the node's name holds in every model that has it; without a device on every engine of ours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bench.results.records import stem


def key(model: str, node: str) -> str:
    """How a node of one model is named in a job."""
    return f"{stem(model)}:{node}"


def value(device: str, rung: str) -> str:
    """How a rung of one device is named in a job."""
    return f"{device}/{rung}"


def parts(text: str, chosen: str, models: Sequence[str]) -> tuple[str, str, str, str]:
    """(model's stem or "", node, device or "", rung) of an entry; a node's name may hold ":" itself."""
    owner = next((s for s in map(stem, models) if text.startswith(f"{s}:")), "")
    device, _, rung = chosen.rpartition("/")
    return owner, text.removeprefix(f"{owner}:") if owner else text, device, rung


def compared(rungs: Mapping[str, str], models: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """The entries that can hold for `models`: without those of another one of the models in `known`."""
    own = {"", *map(stem, models)}
    return {text: chosen for text, chosen in rungs.items() if parts(text, chosen, known)[0] in own}


def of_model(
    rungs: Mapping[str, str], model: str, models: Sequence[str], nodes: Collection[str], device: str
) -> dict[str, str]:
    """Node → rung, of those meant for this model and device. A node that `nodes` lacks is left out where it
    can be another model's, and kept where it can be no other's, so that a wrong name is told."""
    alone = len(set(models)) == 1
    by_node = {}
    for text, chosen in rungs.items():
        owner, node, where, rung = parts(text, chosen, models)
        if where in ("", device) and owner in ("", stem(model)) and (owner or alone or node in nodes):
            by_node[node] = rung
    return by_node
