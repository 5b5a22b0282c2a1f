"""The three answers of a model: what they say of right, wrong, mixed, undecided and missing; their doubts,
and what mends them."""

import msgspec
import pytest

from bench.measure.timing import Timing, too_few_samples
from bench.results import stats
from bench.results.machine_limits import MachineLimits
from bench.results.records import Validity
from bench.results.rows import rows
from bench.results.stats import Interval
from bench.results.stats.medians import overloaded
from bench.views import remedies
from bench.views.cards import NOTHING, cards
from bench.views.sentences.verdicts import verdicts
from tests.bench import synthetic

CPU = ("engine-cpu", "ort-cpu")
replace = msgspec.structs.replace


def made(run, measured):
    items = rows(measured)
    return cards(verdicts(items, [run]), items, [run])


def changed(measured, change, **which):
    """The measurements, of which those of these fields of the case are changed."""
    return [
        change(m) if all(getattr(m.case, name) == value for name, value in which.items()) else m
        for m in measured
    ]


def told(answer):
    return answer.text, answer.detail, answer.role


def test_a_contender_that_is_right_and_slower_everywhere():
    run, measured = synthetic.run(backends=CPU, batches=(1, 16), images=(200,))
    (card,) = made(run, measured)
    assert card.who == "engine-cpu"
    assert told(card.right) == ("✓ same answers", "200 images, accuracy 97.25 %", "good")
    assert card.right.cases[0].backend == "engine-cpu", "it leads to whom it is about, then to others"
    assert card.fast.detail == "engine-cpu slower than ort-cpu"
    assert card.fast.role == "bad"
    low, high = card.fast.text.removesuffix("×").split("–")
    assert 1 < float(low) < float(high), "the factor, whoever is slower"
    assert [case.batch for case in card.fast.cases] == [1, 16]
    assert told(card.held) == ("conv, 64 %", "node0, batch 16", "")
    assert "conv 64 %" in card.held.why
    assert card.text.startswith("lenet5-digits, forward pass: engine-cpu is ")
    assert card.text.endswith("Held back by: conv, 64 % node0, batch 16")


def test_wrong_answers_have_no_speed_and_differing_ones_no_green():
    run, measured = synthetic.run(
        backends=CPU, batches=(1, 16), images=(200,), failures={("engine-cpu", 16): ("incorrect", "off by 3")}
    )
    (card,) = made(run, measured)
    assert told(card.right) == ("✕ wrong", "engine-cpu, batch 16", "bad")
    assert "off by 3" in card.right.why
    assert told(card.fast) == (NOTHING, "wrong answers have no speed", "")
    assert [case.batch for case in card.fast.cases] == [16]

    impossible = {("engine-cpu", 16): ("invalid", "faster than this machine can be")}
    (card,) = made(*synthetic.run(backends=CPU, batches=(1, 16), images=(200,), failures=impossible))
    assert told(card.right)[1:] == ("200 images, 1 case failed", "warn"), "its answers are not called wrong"
    assert told(card.fast) == (NOTHING, "faster than the machine can be", "")

    _, measured = synthetic.run(backends=CPU, batches=(1, 16), images=(200,))
    differ = changed(
        measured,
        lambda m: replace(m, accuracy=replace(m.accuracy, agreement=0.97)),
        backend="engine-cpu",
        batch=16,
    )
    (card,) = made(synthetic.run(backends=CPU, batches=(1, 16), images=(200,))[0], differ)
    assert told(card.right) == ("✕ 6 of 200 images differ", "engine-cpu", "bad")
    run, measured = synthetic.run(backends=("engine-cuda", "ort-cuda"), batches=(1,), images=(200,))
    (card,) = made(run, measured)
    assert card.fast.role == "good"
    differ = changed(
        measured, lambda m: replace(m, accuracy=replace(m.accuracy, agreement=0.97)), backend="engine-cuda"
    )
    (card,) = made(run, differ)
    assert (card.fast.detail, card.fast.role) == ("engine-cuda faster than ort-cuda", ""), (
        "green is for what is right"
    )


def test_what_is_not_sure_has_no_number():
    run, measured = synthetic.run(backends=CPU, batches=(1, 16), images=(200,))

    def held(m):
        return replace(m, validity=Validity(warnings=("the GPU was held back",)))

    (card,) = made(run, changed(measured, held, batch=16))
    assert card.fast.detail == "engine-cpu slower than ort-cpu, 1 of 2 batch sizes"
    assert [case.batch for case in card.fast.cases] == [1]
    (card,) = made(run, [held(m) for m in measured])
    assert told(card.fast) == ("in doubt", "engine-cpu beside ort-cpu", "warn")
    alone = [replace(m, samples_ns=m.samples_ns[:1], rounds=(0,)) for m in measured]
    (card,) = made(run, alone)
    assert card.fast.text in ("in doubt", "not decided")
    assert "×" not in card.fast.text


def test_what_is_missing_says_so():
    run, measured = synthetic.run(backends=CPU, batches=(1, 16), images=(200,))
    empty = cards(verdicts([], [run]), [], [run])
    assert empty == []  # a model without rows has no verdict here; the window makes one of the planned cases
    (card,) = made(run, [m for m in measured if m.case.backend == "ort-cpu"])
    assert card.fast.text == NOTHING
    assert card.right.role == "good"
    crashed = {("engine-cpu", 1): ("crashed", "SIGSEGV"), ("engine-cpu", 16): ("crashed", "SIGSEGV")}
    run, measured = synthetic.run(backends=CPU, batches=(1, 16), images=(200,), failures=crashed)
    (card,) = made(run, measured)
    assert card.right.detail == "200 images, 2 cases failed"
    assert card.right.role == "warn"
    assert told(card.fast)[0] == NOTHING


def test_one_that_wins_somewhere_and_loses_elsewhere_has_both_ends_and_no_colour():
    run, measured = synthetic.run(backends=("engine-cuda", "ort-cuda"), batches=(1, 512), images=(200,))
    (card,) = made(run, measured)
    assert card.fast.text.endswith("× faster")
    assert " slower to " in card.fast.text
    assert card.fast.detail == "engine-cuda beside ort-cuda"
    assert card.fast.role == ""


LIMITS = MachineLimits(
    device="cpu",
    bytes_per_s=1e10,
    flops_per_s=1e11,
    copied_by="copies",
    multiplied_by="products",
    measured_on="here",
    measured_at="now",
)


def test_where_the_limits_of_the_machine_are_known_the_longest_step_is_held_against_them():
    run, measured = synthetic.run(backends=CPU, batches=(16,), images=(200,))
    known = replace(run, limits={"cpu": LIMITS})
    (card,) = made(known, measured)
    longest = max(measured[0].layers, key=lambda layer: layer.time_ns)
    share = longest.flops / LIMITS.flops_per_s * 1e9 / longest.time_ns
    assert card.held.text == "conv, 64 %"
    assert card.held.detail == f"node0: {share:.1%}".replace("%", " %") + " of arithmetic"
    near = replace(LIMITS, bytes_per_s=longest.nbytes / longest.time_ns * 1e9 / 0.91)
    (card,) = made(replace(run, limits={"cpu": near}), measured)
    assert card.held.text == "memory, 91 % of the limit"
    assert "node0" in card.held.detail


def test_copies_and_launches_are_named():
    run, measured = synthetic.run(backends=("engine-cuda", "ort-cuda"), batches=(16,), images=(200,))

    def parts(**phases):
        return lambda m: replace(m, phases=m.phases | phases, wall_ns=1e5, layers=m.layers[:2])

    copied = changed(measured, parts(h2d=9e4), backend="engine-cuda")
    (card,) = made(run, copied)
    assert card.held.text.startswith("copy in, ")
    assert (card.held.detail, card.held.more) == ("batch 16", "100 µs, ort-cuda 54.1 µs"), "no ratio of these"
    turns = [
        replace(m, end_to_end=synthetic.end_to_end(1e5 if m.case.backend == "engine-cuda" else 2e5))
        for m in copied
    ]
    (card,) = made(run, turns)
    assert card.held.more == "2.00× faster end to end", "timed in turns they have one"
    (card,) = made(run, [m for m in copied if m.case.backend == "engine-cuda"])
    assert card.held.more == "", "there is nothing beside it"
    waits = changed(measured, parts(h2d=1e3, d2h=1e3, compute=1e4, sync=8e4), backend="engine-cuda")
    (card,) = made(
        run, [replace(m, layers=tuple(replace(each, time_ns=2e3) for each in m.layers)) for m in waits]
    )
    assert card.held.text == "waiting, 80 %" or card.held.text == "launches: 2 kernels of 2.0 µs"


# ---------------------------------------------------------------------------------------------- remedies


def test_doubts_are_counted_by_kind_and_name_their_cases():
    _, measured = synthetic.run(backends=CPU, batches=(1, 4, 16), images=(200,))
    few = tuple(f"only {n} samples fit the budget; a larger --budget helps" for n in (3, 5))
    measured[0] = replace(measured[0], validity=Validity(warnings=few[:1]))
    measured[1] = replace(measured[1], validity=Validity(warnings=few[1:]))
    items = rows(measured)
    found = remedies.doubts(items)
    boards = [verdict.board for verdict in verdicts(items)]
    assert remedies.counted(boards, found) == "Doubts: 1 !", "one cell has the mark of both"
    assert remedies.counted((), found) == "1 doubt", "of what is compared with nothing"
    (doubt,) = found
    assert len(doubt.cases) == 2
    assert doubt.remedies == ("longer",)
    assert remedies.counted((), ()) == ""
    once = [replace(m, samples_ns=m.samples_ns[:1], rounds=(0,)) for m in measured]
    boards = [verdict.board for verdict in verdicts(rows(once))]
    assert remedies.counted(boards, ()) == "Doubts: 3 ?"


@pytest.mark.parametrize("remedy", remedies.WORDS)
def test_a_remedy_changes_the_job_of_the_doubted_model_alone(remedy):
    run, measured = synthetic.run(models=("lenet5-digits", "alexnet"), backends=CPU, batches=(1, 4))
    measured = [
        replace(m, validity=Validity(warnings=("the GPU was held back",))) if m.case.model == "alexnet" else m
        for m in measured
    ]
    own = {"lenet5-digits": (2,), "alexnet": (3,)}
    sizes = {"height": 8, "alexnet:width": 9, "lenet5-digits:width": 7}
    job = replace(
        run.job,
        models=("lenet5-digits", "alexnet"),
        budget_s=2.0,
        own_batches=own,
        own_images=own,
        dims=sizes,
        rungs={"lenet5-digits:conv1": "im2col", "alexnet:conv2": "cuda/tiled", "conv3": "naive"},
        swaps={"lenet5-digits:conv1": "im2col"},
    )
    again = remedies.again(job, remedies.doubts(rows(measured))[0], remedy)
    assert again.models == ("alexnet",)
    assert again.backends == job.backends
    assert again.batches == job.batches
    assert (again.budget_s, again.threads) == {
        "longer": (8.0, None), "quiet": (2.0, None), "one-thread": (2.0, 1)
    }[remedy]  # fmt: skip
    assert remedies.CHANGES[remedy]
    # What is said of the other one would be a mistake.
    assert again.own_batches == again.own_images == {"alexnet": (3,)}
    assert again.dims == {"height": 8, "alexnet:width": 9}
    assert again.rungs == {"alexnet:conv2": "cuda/tiled", "conv3": "naive"}
    assert again.swaps == {}


def test_whatever_the_program_says_of_a_doubt_has_a_remedy():
    load = {"cores": 2.0, "wall_s": 1.0, "others_s": 1.9}
    said = [
        *too_few_samples(Timing(samples_ns=[1.0] * 3)),
        *too_few_samples(Timing(samples_ns=[1.0])),
        stats.ONE_SAMPLE,
        stats.ONE_ROUND,
        stats.CONTRADICTED,
        stats.across(Interval(1.0, 0.9, 1.1)),
        overloaded(load),
    ]
    assert all(said)
    assert {text: remedies.helps(text) for text in said if not remedies.helps(text)} == {}
    assert remedies.helps(overloaded(load)) == ("quiet", "one-thread")
    assert remedies.helps("the answers to images could not be kept") == ()
