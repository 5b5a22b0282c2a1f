"""A judge that dies, hangs or is spoken over while it serves: each kernel has its own answer all the same."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kernelscope as ks
from kernelscope import judging
from tests.api.test_plugin import judgement

STAND_IN = """
import json, os, sys, time
from pathlib import Path

print(json.dumps({"type": "ready", "kernelscope": "0"}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    text = request["text"]
    own = json.loads(ANSWER) | {"name": text.split()[0]}
    answer = {"type": "judged", "id": request["id"], "judgement": own}
    if "dies once" in text and not Path("died").exists():
        Path("died").touch()
        os._exit(9)
    if "always dies" in text:
        os.kill(os.getpid(), 9)
    if "hangs" in text:
        time.sleep(60)
    if "speaks over" in text:
        print("no JSON at all\\n\\n{")
        print(json.dumps(["judged"]))
        print(json.dumps(answer | {"id": request["id"] - 1, "judgement": {}}))
    if "refused" in text:
        answer = {"type": "refused", "id": request["id"], "reason": "no such operator", "exit_code": 2}
    if "not read" in text:
        answer = {"type": "refused", "id": -1, "reason": "a request that cannot be read", "exit_code": 2}
    print(json.dumps(answer), flush=True)
    if "dies behind" in text:
        os._exit(1)
"""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The stand-ins that were started, in place of the program."""
    begun: list[subprocess.Popen[bytes]] = []
    answer = msgspec.json.encode(judgement()).decode()
    script = f"ANSWER = {answer!r}\n{STAND_IN}"

    def start(arguments: Sequence[str], **pipes: Any) -> subprocess.Popen[bytes]:
        assert list(arguments) == ["judge", "--serve"]
        kinds = {"stdout": subprocess.PIPE} | pipes
        begun.append(subprocess.Popen([sys.executable, "-S", "-c", script], cwd=tmp_path, **kinds))
        return begun[-1]

    monkeypatch.setattr(judging, "started", start)
    return begun


def test_no_answer_is_lost_and_none_is_another_s(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = judging._Server.ask

    def asked(server: judging._Server, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        return ask(server, request, 0.5 if "hangs" in request["text"] else limit_s)

    monkeypatch.setattr(judging._Server, "ask", asked)
    texts = [
        "k0 fine",
        "k1 dies once",
        "k2 speaks over",
        "k3 always dies",
        "k4 dies behind",
        "k5 hangs",
        "k6 fine",
    ]
    with ks.Judge() as judge:
        found = [judge(f"{text}\n") for text in texts]
        with pytest.raises(ks.KernelscopeError, match="no such operator") as refused:
            judge("k7 refused\n")
        with pytest.raises(ks.KernelscopeError, match="cannot be read"):
            judge("k8 not read\n")
    assert refused.value.exit_code == 2
    with pytest.raises(ks.KernelscopeError, match="this Judge is closed"):
        judge("k9 fine\n")
    assert [one.name for one in found] == ["k0", "k1", "k2", "kernel", "k4", "kernel", "k6"]
    assert [one.outcome for one in found] == ["ok", "ok", "ok", "crashed", "ok", "timed_out", "ok"]
    assert [one.right for one in found] == [True, True, True, False, True, None, True]
    assert "signal 9" in found[3].why
    # Anew after k1, twice for k3, after it, after k4, and after k5.
    assert len(started) == 6
    assert all(process.poll() is not None for process in started)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_a_judge_of_its_own(started: list[subprocess.Popen[bytes]]) -> None:
    with ks.Judge() as judge:
        assert judge("k0 fine\n").name == "k0"
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)  # ends it where it hangs
            with contextlib.suppress(BaseException):
                found = judge("k1 fine\n").name
                judge.close()
                os._exit(0 if found == "k1" and started[1].poll() is not None else 3)
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert judge("k2 fine\n").name == "k2"
    assert len(started) == 1  # here


def test_the_limit_of_an_answer_counts_the_kernels_beside(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []
    ask = judging._Server.ask

    def asked(server: judging._Server, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        limits.append(limit_s)
        return ask(server, request, limit_s)

    monkeypatch.setattr(judging._Server, "ask", asked)
    with ks.Judge(timeout=None) as judge:
        judge("k0\n")
        judge("k0\n", timeout=10, beside="best")
        judge("k0\n", timeout=10, beside=["best", "tiled"])
    assert limits == [480, 210, 240]


def test_a_program_that_does_not_start_is_no_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; print('onnxruntime is not installed', file=sys.stderr); sys.exit(2)"

    def start(arguments: Sequence[str], **pipes: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE, **pipes)

    monkeypatch.setattr(judging, "started", start)
    with pytest.raises(ks.KernelscopeError, match="onnxruntime is not installed"):
        ks.judge("k\n", op="softmax")
