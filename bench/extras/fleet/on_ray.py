"""Work handed to a cluster by Ray, which decides where each piece runs by what it needs: a GPU (of a kind),
cores, or a whole processor. What dies with its machine is handed out again, without the cases that were
settled. Needs the extra `cluster`; every machine has Kernelscope in the same folder.

That one measurement at a time has a device is the device's lock (`device_lock`), wherever a piece was put.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.commands.measuring import Ending
from bench.extras.fleet import devices
from bench.extras.fleet.executor import Heard
from bench.extras.fleet.work import Said, Work, perform
from bench.results.messages import CaseStarted, Progress, Provisional
from bench.words.version import requirements
from kernels.environment import PACKAGED, installing
from kernels.errors import InputError, UnavailableError

LOCAL = "local"
TRIES = 3  # of a piece whose machine went away
AHEAD = 2  # pieces that Ray knows of for each that can run: it need not know a million at once
CHATTER_S = (
    1.0  # of what a worker is at, not more than one word so often: a thousand workers talk to one of us
)
_ROOT = str(Path(__file__).resolve().parents[3])


def library() -> Any:
    """Ray. Raises UnavailableError, which says what brings it."""
    try:
        import ray
    except ImportError as error:
        brings = installing(*requirements("cluster")) if PACKAGED else "`pip install -r locks/cluster.txt`"
        raise UnavailableError(
            f"--cluster needs Ray, which is not installed ({error}); {brings} brings it, and "
            "without --cluster processes of this machine do the same"
        ) from error
    return ray


def _about_tokens() -> str:
    """What may help at a cluster that answers nobody: `ray start` takes a token wherever there is one, who
    joins only if it is told to, and Ray's error says neither."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() == "token":
        return "; with RAY_AUTH_MODE=token it must have been started with the same ~/.ray/auth_token"
    return "; if it was started with a token, copy its ~/.ray/auth_token here and set RAY_AUTH_MODE=token"


def performed(work: Work) -> Iterator[Said]:
    """What a piece says while it is done here, on the device that Ray has given this process."""
    place = devices.places(work.device)[0]
    chatter: tuple[Any, ...] = (Progress, CaseStarted, Provisional)
    heard = -CHATTER_S
    said: queue.SimpleQueue[Said | None] = queue.SimpleQueue()
    stop = threading.Event()
    failed: list[BaseException] = []

    def work_on() -> None:
        try:
            outcome = perform(work, place, said.put, stop)
            if outcome.reason and not outcome.cancelled:
                failed.append(InputError(outcome.reason))
        except BaseException as error:
            failed.append(error)
        finally:
            said.put(None)

    thread = threading.Thread(target=work_on, daemon=True)
    thread.start()
    try:
        while (told := said.get()) is not None:
            if isinstance(told.message, chatter):
                if time.monotonic() - heard < CHATTER_S:
                    continue
                heard = time.monotonic()
            yield told
    finally:
        stop.set()
        thread.join()
    if failed:
        yield Said(problem=f"{type(failed[0]).__name__}: {failed[0]}")


class OnRay:
    """A cluster at an address; "local": one that is started here and ends with us. at_once: pieces that share
    a GPU, where they need it alone for a part of their time only."""

    def __init__(self, address: str, at_once: int = 2) -> None:
        self._ray = ray = library()
        self._own = not ray.is_initialized()
        self._at_once = max(1, at_once)
        if self._own:
            self._begin(address)
        self._nodes = [node for node in ray.nodes() if node["Alive"]]
        total = ray.cluster_resources()
        gpus = f", {total['GPU']:g} GPUs" if total.get("GPU") else ""
        self.words = f"Ray, {len(self._nodes)} machines with {total.get('CPU', 0):g} cores{gpus}"

    def _begin(self, address: str) -> None:
        told = {
            "env_vars": {
                "PYTHONPATH": os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH", "")]))
            }
        }
        told["env_vars"] |= {k: v for k, v in os.environ.items() if k.startswith("KERNELSCOPE_")}
        options: dict[str, Any] = {"runtime_env": told, "log_to_driver": False, "configure_logging": False}
        if address != LOCAL:
            options["address"] = address
        else:
            options["include_dashboard"] = False
        try:
            self._ray.init(**options)
        except Exception as error:  # whatever Ray raises for an address at which nothing is
            why = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise InputError(f"the cluster {address} cannot be reached: {why}{_about_tokens()}") from error

    # --------------------------------------------------------------------------------------------- the work

    def needs(self, work: Work) -> dict[str, Any]:
        """What Ray is asked for. A processor that is wanted alone is all of its cores: as many as the
        smallest machine has, so that every one can serve."""
        if work.device == "cuda":
            asked: dict[str, Any] = {"num_cpus": 1, "num_gpus": 1 if work.alone else 1 / self._at_once}
            return asked | ({"accelerator_type": work.gpu} if work.gpu else {})
        cores = [node["Resources"].get("CPU", 0) for node in self._nodes]
        least = min((n for n in cores if n), default=1)
        return {"num_cpus": least if work.alone else min(work.cores, least)}

    def run(self, works: Sequence[Work], heard: Heard) -> Ending:
        ray = self._ray
        if lacking := self._lacking(works):
            return Ending(reasons=(lacking,))
        task = ray.remote(max_retries=0, num_returns="streaming")(performed)
        waiting: deque[tuple[Work, int]] = deque((work, 1) for work in works)
        running: dict[Any, tuple[Work, int, set[str]]] = {}
        reasons: list[str] = []
        most = AHEAD * self._room(works)
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    work, tries = waiting.popleft()
                    running[task.options(**self.needs(work)).remote(work)] = (work, tries, set())
                for stream in self._ready(list(running)):
                    work, tries, done = running[stream]
                    try:
                        said: Said = ray.get(next(stream))
                    except StopIteration:
                        del running[stream]
                    except ray.exceptions.RayError as error:
                        del running[stream]
                        left = work.left(done)
                        if left is not None and tries < TRIES:
                            waiting.append((left, tries + 1))
                        elif left is not None:
                            why = next(iter(str(error).strip().splitlines()), type(error).__name__)
                            reasons.append(f"{work.name}: given up after {TRIES} machines: {why}")
                    else:
                        if said.settled:
                            done.add(said.message.case.key)
                        if said.problem:
                            reasons.append(f"{work.name}: {said.problem}")
                        else:
                            heard(work, said)
        except KeyboardInterrupt:
            return Ending(True, tuple(reasons))
        finally:
            for stream in running:
                ray.cancel(stream, force=False)
        return Ending(reasons=tuple(reasons))

    def _ready(self, running: list[Any]) -> list[Any]:
        """Those that have something to say, all at once: to ask costs as many words as there are."""
        first, others = self._ray.wait(running, num_returns=1, timeout=1.0)
        if not first or not others:
            return list(first)
        return [*first, *self._ray.wait(others, num_returns=len(others), timeout=0)[0]]

    def _room(self, works: Sequence[Work]) -> int:
        """How many pieces such as these can run at once."""
        total = self._ray.cluster_resources()
        needs = [self.needs(work) for work in works[:1]]
        gpus = sum(total.get("GPU", 0) / asked["num_gpus"] for asked in needs if "num_gpus" in asked)
        cores = sum(total.get("CPU", 1) / asked["num_cpus"] for asked in needs if "num_gpus" not in asked)
        return max(1, len(self._nodes), int(gpus), int(cores))

    def _lacking(self, works: Sequence[Work]) -> str:
        """Ray would wait for ever for what no machine has."""
        total = self._ray.cluster_resources()
        for work in works:
            if work.device == "cuda" and not total.get("GPU"):
                return f"{work.name} needs a GPU, and the cluster has none"
            if work.gpu and f"accelerator_type:{work.gpu}" not in total:
                kinds = [k.partition(":")[2] for k in total if k.startswith("accelerator_type:")]
                return f"{work.name} needs a GPU {work.gpu}; the cluster has {', '.join(kinds) or 'none'}"
        return ""

    def close(self) -> None:
        """End what we began: a cluster of our own with all its processes."""
        if self._own:
            self._ray.shutdown()
