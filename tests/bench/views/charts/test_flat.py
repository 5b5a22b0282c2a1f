"""Answers that are all alike are a few words; whatever differs is drawn."""

import msgspec

from bench.views.charts.comparison_charts import charts
from bench.views.sentences.findings import badge
from tests.bench import synthetic


def accuracy(measurements, run):
    return next(c for c in charts([(run, measurements)]) if c.name.endswith("-accuracy"))


def alike():
    run, measurements = synthetic.run(batches=(1, 8))
    known = next(m.accuracy for m in measurements if m.accuracy is not None)
    same = msgspec.structs.replace(known, top1=0.9778, top5=1.0, agreement=1.0)
    return run, [msgspec.structs.replace(m, accuracy=same) for m in measurements]


def test_all_alike_is_a_badge():
    run, measurements = alike()
    assert badge(accuracy(measurements, run)) == "97.78 % right, all agree"


def test_whatever_differs_is_a_chart():
    run, measurements = alike()
    first, *rest = measurements
    assert first.case.backend == "engine-cuda"
    for field in ("top1", "top5", "agreement"):
        other = msgspec.structs.replace(first.accuracy, **{field: 0.5})
        changed = [msgspec.structs.replace(first, accuracy=other), *rest]
        assert badge(accuracy(changed, run)) == "", field


def test_one_and_the_same_disagreement_is_no_badge():
    run, measurements = alike()
    worse = [
        msgspec.structs.replace(m, accuracy=msgspec.structs.replace(m.accuracy, agreement=0.9))
        for m in measurements
    ]
    assert badge(accuracy(worse, run)) == ""


def test_a_wrong_answer_is_no_badge():
    run, measurements = synthetic.run(batches=(1, 8), failures={("engine-cuda", 8): ("incorrect", "far off")})
    assert badge(accuracy(measurements, run)) == ""
