"""Cases handed out: none is lost with a process or a machine, and all come back into one folder."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import main
from bench.commands.measuring import Ending
from bench.extras.course import grading
from bench.extras.course.records import Exercise, GradeCase, Graded, GradeJob
from bench.extras.fleet import on_ray, spread, work
from bench.extras.fleet.devices import Place, cpu
from bench.extras.fleet.executor import Devices, local
from bench.extras.fleet.work import Said, Work
from bench.results.messages import CaseStarted, Hello
from bench.results.records import KILLED_BY, Case, Environment, Job, Measurement, Run
from bench.run.client import Outcome
from bench.run.kinds.comparison import KIND
from kernels import processes
from kernels.errors import InputError, UnavailableError
from tests.bench.extras.fleet.fake_ray import FakeRay

JOB = GradeJob(
    name="x", exercises=(Exercise(name="a", op="gemm", params={}), Exercise(name="b", op="gemm", params={}))
)


def piece(student: str, device: str = "cpu", **more: Any) -> Work:
    cases = tuple(GradeCase(student=student, exercise=name) for name in "ab")
    return Work(student, grading.GRADES, JOB, cases, device, **more)


def said_of(work: Work) -> Iterator[Said]:
    yield Said(Hello(environment=Environment(machine="m")), place="m")
    for case in work.cases:
        yield Said(CaseStarted(case=case, stage="check"), place="m")
        yield Said(Graded(case=case, disposition="ok"), settled=True, place="m")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """on_ray with a fake Ray: call it with what that is to be."""

    def made(*nodes: dict[str, float], dies: dict[int, int] | None = None) -> tuple[FakeRay, on_ray.OnRay]:
        fake = FakeRay(nodes or ({"CPU": 2.0},), dies)
        monkeypatch.setattr(on_ray, "library", lambda: fake)
        monkeypatch.setattr(on_ray, "performed", said_of)
        return fake, on_ray.OnRay("local")

    return made


def settled(executor: Any, works: list[Work]) -> tuple[list[str], Ending]:
    keys: list[str] = []
    ended = executor.run(
        works, lambda work, said: keys.append(said.message.case.key) if said.settled else None
    )
    return keys, ended


def test_what_a_machine_takes_with_it_is_done_elsewhere_and_nothing_twice(ray: Any) -> None:
    fake, executor = ray(dies={1: 3})  # after the first piece's first case is settled
    keys, ended = settled(executor, [piece("s"), piece("t")])
    assert sorted(keys) == ["s--a", "s--b", "t--a", "t--b"]
    assert ended == Ending()
    assert len(fake.asked) == 3
    executor.close()
    assert fake.ended


def test_what_takes_every_machine_with_it_is_given_up_and_said(ray: Any) -> None:
    _, executor = ray(dies=dict.fromkeys(range(1, 9), 1))
    keys, ended = settled(executor, [piece("s")])
    assert keys == []
    assert ended.reasons == (f"s: given up after {on_ray.TRIES} machines: the node died",)


def test_each_piece_asks_for_what_it_needs(ray: Any) -> None:
    fake, executor = ray({"CPU": 64.0, "GPU": 8.0, "accelerator_type:H200": 1.0}, {"CPU": 16.0})
    settled(
        executor,
        [
            piece("alone", alone=True),
            piece("few", cores=2),
            piece("gpu", "cuda", alone=True, gpu="H200"),
            piece("shares", "cuda"),
        ],
    )
    assert fake.asked == [
        {"num_cpus": 16.0},  # all of the smallest, so that every machine can
        {"num_cpus": 2},
        {"num_cpus": 1, "num_gpus": 1, "accelerator_type": "H200"},
        {"num_cpus": 1, "num_gpus": 0.5},
    ]
    assert "2 machines" in executor.words
    assert "8 GPUs" in executor.words


def test_what_no_machine_has_is_not_waited_for(ray: Any) -> None:
    _, executor = ray()
    assert "the cluster has none" in settled(executor, [piece("s", "cuda")])[1].reasons[0]
    _, executor = ray({"CPU": 2.0, "GPU": 1.0, "accelerator_type:A100": 1.0})
    assert "the cluster has A100" in settled(executor, [piece("s", "cuda", gpu="H200")])[1].reasons[0]


def test_a_cluster_that_is_not_there_is_told_in_a_sentence(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ray()
    with pytest.raises(InputError, match="nowhere cannot be reached: no cluster"):
        on_ray.OnRay("nowhere")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnavailableError, match=r"locks/cluster\.txt"):
        on_ray.OnRay("local")


# ------------------------------------------------------------------------------------------- this machine


def test_a_case_whose_worker_was_killed_is_tried_again_and_no_other_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once: what kills its worker each time costs itself."""
    ran: list[list[str]] = []

    def run(job: Any, cases: Any, folder: Any, **_: Any) -> Outcome:
        ran.append([case.exercise for case in cases])
        for case in cases:
            lost = {KILLED_BY: "SIGKILL" if case.exercise == "a" else "SIGSEGV"}
            folder.append(Graded(case=case, disposition="crashed", facts=lost))
        return Outcome(())

    monkeypatch.setattr(work.client, "run", run)
    said: list[Said] = []
    work.perform(piece("s"), cpu(), said.append)
    assert ran == [["a", "b"], ["a"]]
    assert [one.message.case.exercise for one in said if one.settled] == ["b", "a"]


def test_what_was_late_is_looked_at_twice_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time counts, whatever it is."""
    processes = iter(["timed_out", "ok", "ok", "timed_out", "timed_out"])

    def run(job: Any, cases: Any, folder: Any, **_: Any) -> Outcome:
        for case in cases:
            folder.append(Graded(case=case, disposition=next(processes)))  # type: ignore[arg-type]
        return Outcome(())

    monkeypatch.setattr(work.client, "run", run)
    said: list[Said] = []
    work.perform(piece("s", twice=("timed_out",)), cpu(), said.append)
    work.perform(piece("t").left({"t--a"}) or piece("t"), cpu(), said.append)
    assert [(s.message.case.key, s.message.disposition) for s in said if s.settled] == [
        ("s--b", "ok"), ("s--a", "ok"), ("t--b", "timed_out"),
    ]  # fmt: skip


@pytest.mark.parametrize(("code", "again"), [("while True: pass", False), ("time.sleep(60)", True)])
def test_what_was_late_and_worked_all_the_while_is_looked_at_once(
    monkeypatch: pytest.MonkeyPatch, code: str, again: bool
) -> None:
    job = msgspec.structs.replace(JOB, timeout_s=0.25)
    case = GradeCase(student="x", exercise="a")
    tried: list[GradeCase] = []

    def run(job: Any, cases: Any, kept: Any, on_worker: Any, **_: Any) -> Outcome:
        tried.append(cases[0])
        with subprocess.Popen([sys.executable, "-c", f"import time\n{code}"]) as worker:
            on_worker(worker.pid, False)
            kept.take_message(CaseStarted(case=case, stage="check"))
            end = time.monotonic() + 20
            while time.monotonic() < end and sum(processes.worked_s(worker.pid).values()) < 0.5 and not again:
                time.sleep(0.02)
            on_worker(worker.pid, True)
            worker.kill()
        kept.append(Graded(case=case, disposition="timed_out"))
        return Outcome(())

    monkeypatch.setattr(work.client, "run", run)
    said: list[Said] = []
    work.perform(Work("x", grading.GRADES, job, (case,), twice=("timed_out",)), cpu(), said.append)
    assert len(tried) == (2 if again else 1)
    assert [one.message.disposition for one in said if one.settled] == ["timed_out"]


def test_what_cannot_be_done_is_said_and_the_rest_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def perform(work: Work, place: Place, say: Any, stop: Any) -> Outcome:
        if work.name == "bad":
            raise OSError("no room")
        for said in said_of(work):
            say(said)
        return Outcome((), reason="the worker gave up" if work.name == "tired" else "")

    monkeypatch.setattr("bench.extras.fleet.executor.perform", perform)
    keys, ended = settled(local("cpu", 2), [piece("bad"), piece("good"), piece("tired")])
    assert sorted(keys) == ["good--a", "good--b", "tired--a", "tired--b"]
    assert sorted(ended.reasons) == ["bad: OSError: no room", "tired: the worker gave up"]


def test_where_the_folder_cannot_be_written_nobody_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def perform(work: Work, place: Place, say: Any, stop: Any) -> Outcome:
        done.append(work.name)
        say(Said())
        assert stop.wait(10)
        return Outcome(())

    def full(work: Work, said: Said) -> None:
        raise InputError("no space left")

    monkeypatch.setattr("bench.extras.fleet.executor.perform", perform)
    with pytest.raises(InputError, match="no space left"):
        local("cpu").run([piece(name) for name in "abc"], full)
    assert done == ["a"]


# ------------------------------------------------------------------------------------------ places elsewhere


def place(name: str, *refused: str, gpu: str = "") -> Place:
    return Place(name, "", Path(f"{name}.lock"), gpu=gpu, on=name, refused=frozenset(refused))


@pytest.fixture
def took(monkeypatch: pytest.MonkeyPatch) -> Any:
    """took(settles) → what each place was given. settles: by (place, piece) how many of its cases are settled
    there before the place is lost; all of them, where nothing is said."""

    def prepared(settles: dict[tuple[str, str], int]) -> list[tuple[str, str, int]]:
        taken: list[tuple[str, str, int]] = []

        def perform(work: Work, place: Place, say: Any, stop: Any) -> Outcome:
            taken.append((place.name, work.name, len(work.cases)))
            most = settles.get((place.name, work.name), len(work.cases))
            for case in work.cases[:most]:
                say(Said(Graded(case=case, disposition="ok"), settled=True, place=place.name))
            return Outcome((), reason="" if most == len(work.cases) else "ssh: no route to host")

        monkeypatch.setattr("bench.extras.fleet.executor.perform", perform)
        return taken

    return prepared


def test_each_piece_goes_where_what_it_needs_is(took: Any) -> None:
    taken = took({})
    lab, farm = place("lab", gpu="NVIDIA H100"), place("farm", "engine-cuda", "ort-cuda")
    works = [piece("g", "cuda"), piece("h", "cuda", gpu="h100"), piece("c")]
    assert settled(Devices((farm, lab)), works)[1] == Ending()
    assert {(on, name) for on, name, _ in taken if name != "c"} == {("lab", "g"), ("lab", "h")}
    keys, ended = settled(Devices((farm,)), works)
    assert keys == ["c--a", "c--b"]
    assert ended.reasons == tuple(f"{name}: no machine that is left can run it" for name in "gh")


def test_what_a_place_gives_up_another_takes_without_what_is_settled(took: Any) -> None:
    taken = took({("lab", "g"): 1, ("farm", "g"): 1})  # whoever takes it first gives up half of it
    told: list[Any] = []
    ended = Devices((place("lab"), place("farm"))).run(
        [piece("g", "cuda")], lambda work, said: told.append(said)
    )
    assert ended == Ending()
    assert [count for *_, count in taken] == [2, 1]
    assert sorted(on for on, *_ in taken) == ["farm", "lab"]
    assert [said.message.case.key for said in told if said.settled] == ["g--a", "g--b"]
    (warned,) = [said.message.text for said in told if not said.settled]
    assert warned == f"{taken[0][0]} gave up g, and another machine takes it: ssh: no route to host"
    took({("lab", "g"): 1})
    lab, farm = place("lab"), place("farm", "engine-cuda")
    assert settled(Devices((lab, farm)), [piece("g", "cuda")])[1].reasons == ("g: ssh: no route to host",)


def test_a_place_that_cannot_be_reached_is_tried_once(took: Any) -> None:
    names = [f"p{n}" for n in range(6)]
    taken = took({("lab", name): 0 for name in names})
    keys, ended = settled(Devices((place("lab"), place("farm"))), [piece(name) for name in names])
    assert len(keys) == 12
    assert len(set(keys)) == 12
    assert ended == Ending(), "all is done, and that lab was lost is told as it goes"
    assert len([1 for on, *_ in taken if on == "lab"]) <= 1
    taken.clear()
    ended = settled(Devices((place("lab"),)), [piece("p0"), piece("p1")])[1]
    assert ended.reasons == ("p0: ssh: no route to host", "p1: no machine that is left can run it")


# --------------------------------------------------------------------------------------------- one folder


class Played:
    """An executor that does what it is told to have been said."""

    words = "played"

    def __init__(self, *, without: int = 0) -> None:
        self.works: list[Work] = []
        self._without = without

    def run(self, works: Any, heard: Any) -> Ending:
        self.works = list(works)
        for number, one in enumerate(works[self._without :]):
            place = f"host {number}"
            heard(one, Said(Hello(environment=Environment(machine=place)), place=place))
            for case in one.cases:
                heard(one, Said(file=(f"layers/{case.key}.npz", b"kept"), place=place))
                made = Measurement(case=case, disposition="ok", samples_ns=(1.0, 2.0), facts={"own": "yes"})
                heard(one, Said(made, settled=True, place=place))
        return Ending()

    def close(self) -> None:
        """Nothing is kept."""


def test_cases_that_are_compared_stay_together_and_all_come_into_one_folder(tmp_path: Path) -> None:
    names = ("engine-cpu", "ort-cpu", "engine-cuda", "ort-cuda")
    cases = tuple(
        Case(model="m", backend=name, precision=precision, batch=batch)
        for batch in (1, 8)
        for precision in ("fp32", "tf32")
        for name in names
    )
    job = Job(models=("m",), backends=names)
    with KIND.create(tmp_path / "run", Run(job=job, cases=cases)) as folder:
        heard: list[Any] = []
        executor = Played(without=1)
        spread.measure(folder, folder.missing(), executor, heard.append, "H200")
        assert [(w.device, w.gpu, len(w.cases), w.cases[0].batch) for w in executor.works] == [
            ("cpu", "", 4, 8), ("cuda", "H200", 4, 8), ("cpu", "", 4, 1), ("cuda", "H200", 4, 1),
        ]  # fmt: skip
        assert all(w.alone and w.keeps and w.described is KIND for w in executor.works)
        found = folder.measurements()
        assert len(found) == 12
        assert {m.facts["machine"] for m in found} == {"host 0", "host 1", "host 2"}
        assert found[0].facts["own"] == "yes"
        # What was not done is what a resume does.
        assert {case.key for case in folder.missing()} == {case.key for case in executor.works[0].cases}
        again = Played()
        spread.measure(folder, folder.missing(), again, heard.append)
        assert folder.missing() == ()
    assert sorted(path.name for path in (tmp_path / "run" / "machines").iterdir()) == [
        "host_0.json", "host_1.json", "host_2.json",
    ]  # fmt: skip
    assert len(list((tmp_path / "run" / "layers").iterdir())) == 16


def test_a_file_that_would_lie_elsewhere_is_refused(tmp_path: Path) -> None:
    case = Case(model="m", backend="ort-cpu", precision="fp32", batch=1)
    with KIND.create(tmp_path / "run", Run(job=Job(models=("m",), backends=()), cases=(case,))) as folder:

        class Wicked(Played):
            def run(self, works: Any, heard: Any) -> Ending:
                heard(works[0], Said(file=("../out", b"")))
                return Ending()

        with pytest.raises(InputError, match="outside"):
            spread.measure(folder, folder.cases, Wicked(), print)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("accuracy lenet5-digits --gpu H200", "--gpu belongs to --cluster; give that too"),
        ("accuracy lenet5-digits --precision fp61", "--precision 'fp61' is not known"),
        ("accuracy lenet5-digits --images 0", "--images 0 is out of range; 1 or more works"),
        ("accuracy", "accuracy needs a model"),
    ],
)
def test_what_is_no_request_is_told_as_everywhere(typed: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        main.app(typed.split(), standalone_mode=False)
    assert told in str(error.value)
