"""What a run of the tests takes as a sample: the same by one seed, all over many, and all that changed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kernels import registry
from tests import conftest, sampling


@pytest.fixture(autouse=True)
def _nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.VARIABLE, "1")
    monkeypatch.setattr(sampling, "changes", frozenset)


class Item:
    """A test with a case, as pytest collects it."""

    def __init__(self, test: str, case: object, share: Sequence[int] = (4,)) -> None:
        self.nodeid = f"{test}[{case}]"
        self.path = sampling.TESTS / "bench" / "words" / f"{test}.py"
        self.callspec = SimpleNamespace(params={"case": case})
        self.marks = [SimpleNamespace(args=tuple(share))]

    def get_closest_marker(self, name: str) -> Any:
        return next(iter(self.marks), None) if name == "sampled" else None


def taken(items: Sequence[Any]) -> list[str]:
    return [item.nodeid for item in sampling.of(items)[0]]


ITEMS = [Item("test_a", number) for number in range(10)]


def test_one_in_so_many_is_taken_and_the_same_by_the_same_seed() -> None:
    found = taken(ITEMS)
    assert len(found) == 3, "of ten one in four, and rather more than fewer"
    assert taken(ITEMS) == found
    kept, left = sampling.of(ITEMS)
    assert sorted([*kept, *left], key=ITEMS.index) == ITEMS


def test_tests_of_one_group_share_a_sample() -> None:
    alike = [Item(f"test_{letter}", 0, share=(4, "alike")) for letter in "abcdefgh"]  # type: ignore[arg-type]
    assert len(taken(alike)) == 2
    assert len(taken([*alike, *ITEMS])) == 5


def test_over_many_seeds_every_case_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for seed in range(40):
        monkeypatch.setenv(sampling.VARIABLE, str(seed))
        found |= set(taken(ITEMS))
    assert found == {item.nodeid for item in ITEMS}


def test_everything_is_taken_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.VARIABLE, sampling.ALL)
    assert len(taken(ITEMS)) == len(ITEMS)
    assert sampling.some("kind", range(9), 2) == list(range(9))


def test_what_is_not_marked_or_draws_by_itself_is_always_taken() -> None:
    plain, itself = Item("test_b", 1), Item("test_c", 1, ())
    plain.marks.clear()
    assert taken([plain, itself]) == [plain.nodeid, itself.nodeid]


def test_a_case_that_was_named_is_taken() -> None:
    assert all(taken([item]) for item in ITEMS)


def test_a_kernel_that_was_changed_or_its_header_is_always_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [Item("test_a", rung) for rung in registry.rungs("cuda", "gemm")]
    header = sampling.ROOT / "kernels" / "cuda" / "gemm_tensor.cuh"
    reading = {item.nodeid for item in items if header in sampling._files(item.callspec.params["case"])}
    assert 2 < len(reading) < len(items), "a header that some of them include"
    assert not reading <= set(taken(items))
    monkeypatch.setattr(sampling, "changes", lambda: frozenset([header]))
    assert reading <= set(taken(items))
    first = items[0].callspec.params["case"].path
    monkeypatch.setattr(sampling, "changes", lambda: frozenset([first]))
    assert items[0].nodeid in taken(items)


def test_of_what_is_dear_those_near_a_change_come_first_and_no_more_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = sampling.ROOT
    places = ("bench/words/a", "bench/judge/b", "bench/c", "engine/d", "gui/e", "f")
    items = [Item("test", place, share=(3, "long")) for place in places]  # type: ignore[arg-type]
    for item, place in zip(items, places, strict=True):
        folder, _, name = place.rpartition("/")
        item.path = sampling.TESTS / folder / f"test_{name}.py"

    def first(*changed: str) -> set[str]:
        monkeypatch.setattr(sampling, "changes", lambda: frozenset(root / name for name in changed))
        found = set()
        for seed in range(40):
            monkeypatch.setenv(sampling.VARIABLE, str(seed))
            assert len(taken(items)) == 2
            found |= set(taken(items))
        return {nodeid[5:-1] for nodeid in found}

    assert first() == set(places), "each has its turn"
    assert first("tests/engine/test_d.py", "tests/test_f.py") == {"engine/d", "f"}, "they themselves"
    assert first("bench/words/units.py", "bench/judge/seeds.py") == {"bench/words/a", "bench/judge/b"}
    assert first("engine/graph/graph.py", "bench/colours.py") == {"engine/d", "bench/c"}
    assert first("tests/bench/judge/conftest.py", "tests/gui/shared.py") == {"bench/judge/b", "gui/e"}
    assert first("tests/conftest.py", "docs/page.md") == set(places), "what all share is near to none"
    assert first(*(f"{place}.py" for place in places)) == set(places), "a large change costs no more"


def test_who_names_tests_gets_all_that_are_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    dear = [Item("test_a", place, share=(3, "window")) for place in range(6)]  # type: ignore[arg-type]
    alike = [Item("test_b", place, share=(3, "alike")) for place in range(6)]  # type: ignore[arg-type]
    assert len(sampling.of([*dear, *alike])[0]) == 4
    assert len(sampling.of([*dear, *alike], named=True)[0]) == 8

    config = SimpleNamespace(
        invocation_params=SimpleNamespace(dir=sampling.ROOT), option=SimpleNamespace(keyword="")
    )
    monkeypatch.setattr(conftest.marks, "forgotten", lambda items: set())
    config.hook = SimpleNamespace(pytest_deselected=lambda items: None)
    for arguments, count in ((["tests"], 2), ([str(sampling.ROOT)], 2), (["tests/gui/test_a.py::test_b"], 6)):
        config.args, items = arguments, list(dear)
        conftest.pytest_collection_modifyitems(config, items)
        assert len(items) == count


def test_kinds_draw_apart() -> None:
    assert len({tuple(sampling.some(kind, range(100), 5)) for kind in "abcdef"}) == 6
    assert sampling.some("a", range(3), 5) == [0, 1, 2]


def test_a_word_that_is_no_seed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.VARIABLE, "most")
    with pytest.raises(ValueError, match="KERNELSCOPE_SEED='most' is no seed; a whole number works"):
        sampling.settle()


def test_without_a_seed_it_is_the_commit_s_and_without_git_the_day_s(monkeypatch: pytest.MonkeyPatch) -> None:
    for told, seed in (("0000002a" + 32 * "f", "42"), ("", None)):
        monkeypatch.delenv(sampling.VARIABLE)
        monkeypatch.setattr(sampling, "_git", lambda *_, told=told: told)
        sampling.settle()
        assert sampling.number("any") >= 0
        assert seed is None or sampling.again().startswith(f"KERNELSCOPE_SEED={seed} ")


@pytest.mark.parametrize(("failed", "marked"), [(True, True), (True, False), (False, True)])
def test_a_sampled_test_that_fails_says_how_it_is_repeated(failed: bool, marked: bool) -> None:
    item = Item("test_a", 1)
    if not marked:
        item.marks.clear()
    hook = conftest.pytest_runtest_makereport(item)
    next(hook)
    report = SimpleNamespace(failed=failed, sections=[])
    with pytest.raises(StopIteration) as stopped:
        hook.send(report)
    assert stopped.value.value is report
    told = [("what was drawn", "KERNELSCOPE_SEED=1 draws the same; KERNELSCOPE_SEED=all takes everything")]
    assert report.sections == (told if failed and marked else [])
