"""What the charts of a profile share: the parts' order, colours and words, and the small print."""

from __future__ import annotations

from collections.abc import Sequence

from bench.profile import parts as profile_parts
from bench.profile.records import CaseProfile, Profile
from bench.words import palette

# What takes most of a model has the colour that it has in every chart; other operators one by one in the
# order in which they are met; what is not an operator has colours of its own.
MAIN = {"Conv": "conv", "Gemm": "fc", "MaxPool": "pool"}
OPERATORS = ("#999933", "#6B5FB0", "#661100", "#88A0DC", "#AA7744", "#4477AA", "#557722")
PARTS = {
    "h2d": palette.CATEGORIES["h2d"][1],
    "d2h": palette.CATEGORIES["d2h"][1],
    "d2d": "#A8A060",
    "memset": "#7B8C8C",
    "staging": "#1173CC",
    "launch": "#ED8643",
    "alloc": "#C15C6E",
    "sync": palette.CATEGORIES["sync"][1],
    "api": "#D56B99",
    "ort": "#C6A4E0",
    "host": "#4F6070",
    "profiler": "#BFC7D0",
    "rest": palette.CATEGORIES["rest"][1],
}
# Parts whose label is no end of a sentence.
IN_WORDS = {
    "h2d": "copying in",
    "d2h": "copying out",
    "d2d": "copying on the device",
    "staging": "the host's filling and emptying of page-locked memory",
    "launch": "waiting for what is being launched",
    "ort": "ONNX Runtime's own work on the host",
    "host": "the host's own code",
    "profiler": "the profiler's own work",
    "rest": "not explained",
}


def colours(keys: Sequence[str]) -> dict[str, str]:
    """A colour for each part; an operator's, where it is none of the main ones, by its place among them."""
    operators = [key for key in keys if key.startswith(profile_parts.OP)]
    main = {key: MAIN[name] for key in operators if (name := key.removeprefix(profile_parts.OP)) in MAIN}
    found = {key: palette.CATEGORIES[category][1] for key, category in main.items()}
    others = [key for key in operators if key not in found]
    found |= {key: OPERATORS[index % len(OPERATORS)] for index, key in enumerate(others)}
    return found | {key: PARTS.get(key, palette.MUTED) for key in keys if key not in found}


def keys_of(profiles: Sequence[CaseProfile], window: str = "pass") -> list[str]:
    """The parts of all these cases in stacking order: operators, the longest first, then the others."""
    total: dict[str, float] = {}
    for made in profiles:
        if (found := made.breakdown(window)) is not None:
            for share in found.parts:
                # A share of its own pass: a large batch is not to decide alone.
                total[share.key] = total.get(share.key, 0.0) + share.time_ns / max(found.wall_ns, 1)
    operators = sorted((key for key in total if key.startswith(profile_parts.OP)), key=lambda k: -total[k])
    return operators + [key for key in profile_parts.OTHERS if key in total]


def footer(profile: Profile) -> tuple[str, ...]:
    """Machine, software and command."""
    env = profile.environment
    software = [
        f"{name} {version}"
        for name, version in env.packages.items()
        if name.startswith(("numpy", "onnxr", "cupy", "cupti"))
    ]
    driver = f"driver {env.driver}" if env.driver else ""
    lines = [
        " · ".join(filter(None, [env.machine, env.cpu, env.gpu, driver, env.os])),
        " · ".join(filter(None, [*software, profile.created_at.replace("T", " ")[:16]])),
        profile.command,
    ]
    return tuple(filter(None, lines))
