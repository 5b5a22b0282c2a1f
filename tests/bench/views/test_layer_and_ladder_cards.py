"""What Layers and Ladder open with: the first tensor that diverges, what is lost and won and by which layer;
the user's own kernel beside the fastest rung."""

import msgspec

from bench.results.finding import Finding
from bench.results.ladder_rows import rows as ladder_rows
from bench.results.records import ErrorStats, Validity
from bench.views import ladder_cards, layer_cards
from bench.views.cards import FAST, HELD, NOTHING, RIGHT
from tests.bench import synthetic
from tests.bench.ladder.test_ladder import example, measured

replace = msgspec.structs.replace
OFF = ErrorStats(rel_l2=3e-3, max_abs=1.0, mean_abs=0.1, max_rel=0.5, bound=1e-5, ok=False, reason="off by 3")


def pair(times):
    """Our case and its reference's, whose layers take so many times as long; by the layer's number."""
    _, found = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(16,), images=(200,))
    ours, theirs = sorted(found, key=lambda m: m.case.backend)
    layers = tuple(
        replace(layer, time_ns=layer.time_ns * times.get(number, 1.0))
        for number, layer in enumerate(theirs.layers)
    )
    own = tuple(replace(a, time_ns=b.time_ns) for a, b in zip(ours.layers, theirs.layers, strict=True))
    return replace(
        theirs, layers=tuple(replace(b, time_ns=a.time_ns) for a, b in zip(own, layers, strict=True))
    ), replace(ours, layers=layers)


def told(answer):
    return answer.text, answer.detail


def test_operators_that_lose_and_win_are_named_and_the_layer_that_most_of_it_comes_of():
    theirs, ours = pair({0: 2.0, 2: 2.0, 1: 0.5, 3: 0.5})
    found = layer_cards.answers(ours, theirs)
    assert told(found[FAST]) == ("loses on every conv", "wins on every pool")
    assert found[FAST].role == "", "a layer's time decides nothing"
    assert found[HELD].text == "node0: 64 % of the gap"
    assert found[HELD].cases == ("t0",)
    assert told(found[RIGHT]) == ("✓ all 6 layers", "1e-07 of 1e-05 allowed")
    assert layer_cards.text(ours, theirs) == (
        "✓ all 6 layers; loses on every conv, wins on every pool: node0: 64 % of the gap"
    )
    # Of a kind that loses in part, the layers themselves are named.
    theirs, ours = pair({2: 2.0})
    assert layer_cards.answers(ours, theirs)[FAST].text == "loses on node2"
    held = Validity(warnings=("the GPU was held back",))
    assert layer_cards.answers(replace(ours, validity=held), theirs)[FAST].text == "loses on node2 !"
    # What differs by little is neither.
    theirs, ours = pair({2: 1.05})
    assert layer_cards.answers(ours, theirs)[FAST].text == "no layer differs"
    assert layer_cards.answers(ours, None)[FAST].text == NOTHING


def test_the_first_tensor_that_diverges_is_the_first_in_the_order_of_running():
    theirs, ours = pair({})
    layers = list(ours.layers)
    layers[4] = replace(layers[4], isolated=OFF)
    layers[2] = replace(layers[2], propagated=OFF)
    found = layer_cards.answers(replace(ours, layers=tuple(layers)), theirs)[RIGHT]
    assert told(found) == ("✕ t2 diverges", "first, carried along")
    assert (found.role, found.cases) == ("bad", ("t2",))
    assert "off by 3" in found.why
    unchecked = tuple(replace(layer, isolated=None, propagated=None) for layer in ours.layers)
    assert layer_cards.answers(replace(ours, layers=unchecked), theirs)[RIGHT].text == NOTHING


def test_a_ladder_opens_with_its_fastest_rung_or_with_the_user_s_own():
    ladder, found = example()
    found = [m for m in found if not m.case.user]
    who, answers = ladder_cards.answers(ladder, ladder_rows(ladder, found))
    assert who == "02 better"
    assert told(answers[RIGHT]) == ("✓ 3 of 3 rungs right", "1 refused")
    assert told(answers[FAST]) == ("2.00×", "slower than ONNX Runtime (CPU)")
    assert (
        told(answers[HELD]) == ("arithmetic, 50 % of the limit", "02 better") or "%" in answers[HELD].detail
    )
    best = next(m for m in found if m.case.label == who)
    case = replace(best.case, rung="mine", number=90, user=True)
    mine = replace(best, case=case, samples_ns=tuple(43 * ns for ns in best.samples_ns))
    own, answers = ladder_cards.answers(ladder, ladder_rows(ladder, [*found, mine]))
    assert own == "90 mine"
    assert answers[RIGHT].text == "✓ right"
    assert told(answers[FAST]) == ("43.0×", "slower than 02 better")
    assert ladder_cards.text(ladder, ladder_rows(ladder, [*found, mine])).startswith("90 mine: ✓ right")
    wrong = replace(mine, disposition="incorrect", reason="the sum lacks its bias", samples_ns=())
    _, answers = ladder_cards.answers(ladder, ladder_rows(ladder, [*found, wrong]))
    assert (answers[RIGHT].text, answers[RIGHT].why) == ("✕ wrong", "the sum lacks its bias")
    assert answers[FAST].text == NOTHING
    named = replace(wrong, finding=Finding(fault="bias", reason="the bias is left out"))
    _, answers = ladder_cards.answers(ladder, ladder_rows(ladder, [*found, named]))
    assert answers[RIGHT].text == "✕ wrong: bias"
    # Its first run is beside the reference alone.
    reference = next(m for m in found if m.case.is_reference)
    _, answers = ladder_cards.answers(ladder, ladder_rows(ladder, [mine, reference]))
    assert told(answers[FAST]) == ("86.0×", "slower than ONNX Runtime (CPU)")


def test_the_nearest_rung_by_idea_is_the_one_with_its_words_or_none():
    def rung(name, number, idea):
        made = measured(name, number, 1e5)
        return replace(made, case=replace(made.case, idea=idea))

    ladder, _ = example()
    ideas = {
        "map_a_block": "Each block computes one map, so that its weights stay in shared memory.",
        "register_sum": "The sum stays in a register until the last product.",
        "im2col": "Columns of the image become a matrix.",
    }
    others = [rung(name, number, idea) for number, (name, idea) in enumerate(ideas.items(), 1)]
    own = rung("mine", 90, "A block for each map; weights lie in shared memory")
    *rows, mine = ladder_rows(ladder, [*others, own])
    assert ladder_cards.nearest_idea(mine, rows).name == "map_a_block"
    *rows, mine = ladder_rows(ladder, [*others, rung("mine", 90, "Something quite different")])
    assert ladder_cards.nearest_idea(mine, rows) is None


def test_two_runs_laid_over_each_other_differ_by_kernel_time_shape_and_rightness():
    _, ours = pair({})
    mine = ours.layers
    changed = [
        mine[0],
        replace(mine[1], time_ns=mine[1].time_ns / 2),
        replace(mine[2], rung="tiled"),
        replace(mine[3], shape=(16, 7)),
        replace(mine[4], isolated=OFF),
        # The last one has another output, and a node of the same name.
        replace(mine[5], output="renamed"),
    ]
    found = layer_cards.matched(mine, changed)
    assert list(found) == [layer.output for layer in mine]
    assert [layer_cards.differs(layer, found[layer.output]) for layer in mine] == [
        "", "2.00× its time", "there by tiled", "there 16×7", "diverges there alone", ""
    ]  # fmt: skip
    assert layer_cards.differs(mine[0], None) == "only here"


def test_what_is_laid_over_is_of_the_same_backend_and_of_the_same_model_or_the_only_other_one():
    _, ours = pair({})
    retrained = replace(ours, case=replace(ours.case, model="lenet5-mine", batch=4))
    theirs = replace(ours, case=replace(ours.case, backend="ort-cpu"))
    assert layer_cards.counterpart(ours, [theirs]) is None
    assert layer_cards.counterpart(ours, [retrained, theirs]) is retrained
    other = replace(ours, case=replace(ours.case, model="alexnet"))
    assert layer_cards.counterpart(ours, [retrained, other]) is None, "nobody said which of them"
    assert layer_cards.counterpart(ours, [retrained, other, ours]) is ours
