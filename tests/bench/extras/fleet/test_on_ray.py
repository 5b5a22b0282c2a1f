"""The same with Ray itself, on two machines that are processes here; where it is installed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bench.extras.course import assignment, grading, walls
from bench.extras.course.records import KIND, Graded
from bench.extras.fleet import on_ray
from bench.extras.fleet.work import Said, Work
from tests.bench.extras.course import classroom

pytest.importorskip("ray", reason="needs the extra cluster")


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_class_on_two_machines_of_which_one_dies_loses_nobody(tmp_path: Path) -> None:
    import ray
    from ray.cluster_utils import Cluster

    (tmp_path / "assignment.toml").write_text(classroom.assignment(["softmax"], seconds=60, budget=0.02))
    for name in ("a", "b", "c"):
        classroom.hand_in(tmp_path / "in" / name, {"softmax": "right"})
    of = grading.gather(assignment.read(tmp_path), tmp_path / "in")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        other = cluster.add_node(num_cpus=1)
        executor = on_ray.OnRay(cluster.address)
        assert "2 machines" in executor.words
        with KIND.create(tmp_path / "out", of.header()) as folder:
            told: list[object] = []
            killed: list[float] = []

            def heard(event: object) -> None:
                told.append(event)
                if not killed:  # somebody is at work on it by now
                    killed.append(time.monotonic())
                    cluster.remove_node(other, allow_graceful=False)

            ended = grading.grade(of, folder, executor, walls.Walls(walls.NONE, "cpu", 2048), heard)
            found = folder.measurements()
        assert ended.reasons == ()
        assert [g.disposition for g in found] == ["ok"] * 3, [g.reason for g in found]
        assert len([g for g in told if isinstance(g, Graded)]) == 3
        executor.close()
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_what_it_hands_out_can_be_sent(tmp_path: Path) -> None:
    """With its walls, its files and its records."""
    from ray import cloudpickle

    work = Work(
        "s",
        grading.GRADES,
        grading.GradeJob(name="x", exercises=()),
        (),
        files={"a": "b"},
        walls=walls.Walls(walls.NONE),
    )
    assert cloudpickle.loads(cloudpickle.dumps(work)) == work
    assert cloudpickle.loads(cloudpickle.dumps(Said(place="m"))) == Said(place="m")
