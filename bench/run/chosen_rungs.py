"""The rungs that a job names for nodes, "[MODEL:]NODE" → "[DEVICE/]RUNG".

Without a model the entry holds for every model that has the node; without a device for every engine of ours.
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
    """The entries that can hold for `models`: all except those of other models in `known`."""
    own = {"", *map(stem, models)}
    return {text: chosen for text, chosen in rungs.items() if parts(text, chosen, known)[0] in own}


def of_model(
    rungs: Mapping[str, str], model: str, models: Sequence[str], nodes: Collection[str], device: str
) -> dict[str, str]:
    """Node → rung for this model and device. An entry whose node is not in `nodes` is left out if it may be
    another model's; else it is kept, so that a wrong name is reported."""
    alone = len(set(models)) == 1
    by_node = {}
    for text, chosen in rungs.items():
        owner, node, where, rung = parts(text, chosen, models)
        if where in ("", device) and owner in ("", stem(model)) and (owner or alone or node in nodes):
            by_node[node] = rung
    return by_node
