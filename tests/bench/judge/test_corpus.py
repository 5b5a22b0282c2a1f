"""The corpus of cheats can be read, and what is said of a campaign against it is so."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kernels.errors import KernelError
from tests.bench.judge import attack, corpus
from tests.bench.judge.attack import Outcome

FEWEST = 50
# The kinds that have to be there on both devices, and those that a CUDA kernel has no means for.
BOTH = {"memory", "poison", "partial", "later", "detection", "machinery", "ends", "large", "renewed",
        "changes", "others", "precision", "inputs"}  # fmt: skip
CPU_ALONE = {"copies", "batch", "processes", "search", "limit"}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_there_are_many_of_every_kind(device: str) -> None:
    planted = corpus.planted(device)
    assert len(planted) >= FEWEST
    assert len({cheat.name for cheat in planted}) == len(planted)
    assert set(corpus.of_each_family(planted)) >= BOTH | (CPU_ALONE if device == "cpu" else {"cache"})
    for cheat in planted:
        assert cheat.rung.idea.startswith("Planted: "), cheat.name
        assert "ok" not in cheat.expected or cheat.family != "precision", cheat.name
        refused = cheat.rung.refusal(cheat.params, (9, 0))
        assert refused is None or cheat.rung.language, cheat.name  # whose compiler may not be here


def test_the_readme_tells_every_field_and_family() -> None:
    text = (corpus.FOLDER / "README.md").read_text(encoding="utf-8")
    for word in (*corpus.FAMILIES, *(field for field in corpus.FIELDS)):
        assert f"`{word}`" in text, word


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ('family = "memory"', "lacks 'shape'"),
        ('family = "none"', "is none of"),
        ("mood = 1", "has 'mood'"),
        ('expected = ["fine"]', "no dispositions"),
    ],
)
def test_fields_that_are_none_are_told(
    told: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {"family": '"memory"', "shape": '{ kind = "tanh", size = 64 }', "expected": '["incorrect"]',
             "work": '"some"', "beside": '"ufunc"'}  # fmt: skip
    key, _, value = told.partition(" = ")
    if "lacks" in words:
        whole = {key: value}
    lines = "\n".join(f"{name} = {of}" for name, of in (whole | {key: value}).items())
    header = '# op = "unary"\n# rung = 99\n# name = "mine"\n# idea = "A test."\n'
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "99_mine.py").write_text(f'{header}"""\n{lines}\n"""\n')
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    with pytest.raises((ValueError, KernelError), match=words):
        corpus.cheats.__wrapped__("cpu")


def _became(disposition: str, expected: tuple[str, ...], shown: float = 0, harmed: str = "") -> Outcome:
    return Outcome("it", "cpu", "memory", expected, disposition, shown_ns=shown, full_ns=100, harmed=harmed)


@pytest.mark.parametrize(
    ("outcome", "through", "unexpected"),
    [
        (_became("incorrect", ("incorrect",)), False, False),
        (_became("crashed", ("incorrect",)), False, True),
        (_became("ok", ("incorrect",), shown=100), True, False),
        (_became("ok", ("incorrect", "ok"), shown=90), False, False),
        (_became("ok", ("incorrect", "ok"), shown=70), True, False),
        (_became("incorrect", ("incorrect",), harmed="crashed"), True, False),
    ],
)
def test_who_is_let_through(outcome: Outcome, through: bool, unexpected: bool) -> None:
    assert bool(outcome.through) == through
    assert outcome.unexpected == unexpected


def test_a_sample_has_one_of_each_kind_and_is_drawn_again() -> None:
    every = corpus.planted("cpu")
    families = set(corpus.of_each_family(every))
    taken = attack.sample(every, 30, seed=5)
    assert len(taken) == 30
    assert {cheat.family for cheat in taken} == families
    assert taken == attack.sample(every, 30, seed=5) != attack.sample(every, 30, seed=6)
    assert len(attack.sample(every, 1, seed=5)) == len(families)


def test_those_that_meddle_with_others_have_a_ladder_of_their_own() -> None:
    every = corpus.planted("cpu")
    groups = attack.grouped(every, 6)
    assert sorted(cheat.name for group in groups for cheat in group) == sorted(cheat.name for cheat in every)
    assert max(map(len, groups)) == 6
    for group in groups:
        assert len({(cheat.params, cheat.beside) for cheat in group}) == 1
        assert len(group) == 1 or not any(cheat.alone for cheat in group)


def test_a_page_counts_and_a_campaign_goes_on(tmp_path: Path) -> None:
    outcomes = [
        _became("incorrect", ("incorrect",)),
        _became("ok", ("ok",), shown=90),
        _became("ok", ("incorrect",), shown=9),
        _became("invalid", ("invalid",)),
    ]
    told = attack.page(outcomes, "3 right rungs on shapes drawn anew: 0 accused", "make attack", "a machine")
    assert "| memory | answers from memory, by some key or by counting | 4 | 1 | 1 | 1 | 1 |" in told
    assert "4 cheats: 1 let through (it)" in told
    assert "0 accused" in told
    file = tmp_path / "kept.json"
    file.write_bytes(msgspec.json.encode(outcomes[:1]))
    assert attack._done(file) == {"it": outcomes[0]}
    assert attack._done(tmp_path / "none.json") == {}
