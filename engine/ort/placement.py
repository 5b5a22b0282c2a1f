"""Where ONNX Runtime put a session's nodes. It falls back to the CPU in silence; here that is an error, not a
result."""

from __future__ import annotations

from typing import Any

from kernels.errors import UnavailableError

_CPU = "CPUExecutionProvider"


def check(session: Any, provider: str, what: str, helps: str) -> dict[str, str]:
    """What a record says of nodes that other providers run. Raises UnavailableError where the session has
    left the provider that was asked for, or no node runs there. helps: what would keep it."""
    providers = session.get_providers()
    if not providers or providers[0] != provider:
        raise UnavailableError(
            f"ONNX Runtime fell back from {provider} to {providers[0] if providers else 'nothing'} for "
            f"{what}: {helps}"
        )
    info = getattr(session, "get_provider_graph_assignment_info", None)
    if info is None or provider == _CPU:  # before ONNX Runtime 1.24
        return {}
    placed = [(part.ep_name, node) for part in info() for node in part.get_nodes()]
    elsewhere = [node for by, node in placed if by != provider]
    on_cpu = [node for by, node in placed if by == _CPU]
    if placed and len(elsewhere) == len(placed):
        where = "the CPU" if len(on_cpu) == len(placed) else "other providers"
        raise UnavailableError(f"ONNX Runtime placed every node of {what} on {where}")
    if not elsewhere:
        return {}
    names = ", ".join(f"{node.name} ({node.op_type})" for node in elsewhere[:5])
    told = f"{len(elsewhere)}: {names}{', …' if len(elsewhere) > 5 else ''}"
    return {"nodes_on_cpu" if len(on_cpu) == len(elsewhere) else "nodes_elsewhere": told}
