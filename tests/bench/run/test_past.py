"""What a run took is known to the next one like it on the same machine, and to nobody else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.results.records import Environment, Job
from bench.run import past
from bench.run.past import Past, Took, Where

pytestmark = pytest.mark.usefixtures("own_cache")

MACHINE = Environment(machine="here", cpu="fast", cores=2)
JOB = Job(models=("net",), backends=("engine-cpu",))


def took(model: str = "net", batch: int = 1, before: float = 1.0) -> Took:
    return Took(where=Where(model, batch, "fp32", 64), nbytes=100, budget_s=1.0, before=before, samples=2.0)


def of(job: Job = JOB, machine: Environment = MACHINE, kind: str = "compare") -> Past:
    found = Past(kind, job)
    found.of(machine)
    return found


def test_it_is_known_to_the_same_kind_of_run_on_the_same_machine() -> None:
    of().keep([took()])
    assert Past("compare", JOB).of(MACHINE) == (took(),)
    again = msgspec.structs.replace(JOB, models=("other",), batches=(1, 2), budget_s=3.0)
    assert Past("compare", again).of(MACHINE) == (took(),), (
        "of models and batch sizes each turn speaks itself"
    )
    for other in (
        msgspec.structs.replace(MACHINE, cpu="slow"),
        msgspec.structs.replace(MACHINE, gpu="some"),
        msgspec.structs.replace(MACHINE, machine="there"),
    ):
        assert Past("compare", JOB).of(other) == ()
    assert Past("profile", JOB).of(MACHINE) == ()
    assert Past("compare", msgspec.structs.replace(JOB, instances=3)).of(MACHINE) == ()


def test_the_newest_of_a_turn_counts_part_by_part() -> None:
    of().keep([msgspec.structs.replace(took(), first=9.0, before=None, after={"a": 1.0, "b": 1.0})])
    of().keep([msgspec.structs.replace(took(before=2.0), after={"a": 3.0})])
    (one,) = Past("compare", JOB).of(MACHINE)
    assert (one.first, one.before, one.after) == (9.0, 2.0, {"a": 3.0, "b": 1.0})
    of().keep([msgspec.structs.replace(took(before=4.0), nbytes=200)])
    (one,) = Past("compare", JOB).of(MACHINE)
    assert (one.first, one.before) == (None, 4.0), "another file of that name is another model"


def test_it_holds_so_many_turns_of_so_many_kinds_and_the_oldest_go(own_cache: Path) -> None:
    of().keep([took(batch=batch) for batch in range(1, past.MOST_TURNS + 11)])
    of().keep([took(batch=12)])
    held = [one.where.batch for one in Past("compare", JOB).of(MACHINE)]
    assert held == [11, *range(13, past.MOST_TURNS + 11), 12]
    for at in range(past.MOST_ENTRIES + 5):
        of(msgspec.structs.replace(JOB, instances=at + 10)).keep([took()])
    files = [*own_cache.rglob("*.json")]
    assert len(files) == past.MOST_ENTRIES
    assert sum(file.stat().st_size for file in files) < 1 << 20


def test_what_says_no_model_and_what_was_never_told_of_a_machine_is_not_kept(own_cache: Path) -> None:
    Past("compare", JOB).keep([took()])
    of().keep([took(model="")])
    of().keep([])
    assert not own_cache.exists()


def test_where_nothing_can_be_kept_nothing_is_known_and_nothing_fails(own_cache: Path) -> None:
    own_cache.write_text("a file")
    of().keep([took()])
    assert Past("compare", JOB).of(MACHINE) == ()


@pytest.mark.parametrize(
    "change", [{"before": -1.0}, {"samples": 1e9}, {"nbytes": "many"}, {"where": ["net", 10**30]}]
)
def test_times_that_there_cannot_be_are_none(change: dict[str, object]) -> None:
    told = of()
    told.keep([took()])
    (file,) = past._STORE.folder().rglob("*.json")
    held = msgspec.json.decode(file.read_bytes())
    held["value"][0] |= change
    file.write_bytes(msgspec.json.encode(held))
    told.keep([took(before=3.0)])
    assert [one.before for one in Past("compare", JOB).of(MACHINE)] == [3.0]


def test_what_was_kept_on_a_busy_machine_is_known_as_it_takes_alone() -> None:
    of().keep([took(before=1.0)])
    of().keep([msgspec.structs.replace(took(before=6.0), samples=4.0, slowed=3.0, after={"a": 9.0})])
    (one,) = Past("compare", JOB).of(MACHINE)
    assert (one.slowed, one.before, one.after) == (1.0, 2.0, {"a": 3.0})
    assert one.samples == 3.0, "held to the budget; between what it was before and what it was now"
