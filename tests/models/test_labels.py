"""The order of a model's classes and a data set's: brought together by name, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.errors import InputError
from models import labels
from models.datasets import Dataset

FRUIT = ("apple", "pear", "plum")


def data(classes: tuple[str, ...], numbers: str) -> Dataset:
    count = len(classes)
    return Dataset("some", np.zeros((count, 2, 2), np.uint8), np.arange(count), classes, numbers)


def test_names_of_imagenet_are_found_in_whatever_way_they_are_written() -> None:
    order = (
        "n01440764 tench, Tinca tinca",
        "n02012849 crane",
        "n03126707 crane, hoist",
        "maillot, tank suit",
    )
    found = labels.matched(("n03126707", "n01440764"), order, "net").numbers
    assert found is not None
    assert found.tolist() == [2, 0]
    found = labels.matched(("Tinca_tinca", "tank suit"), order, "net").numbers
    assert found is not None
    assert found.tolist() == [0, 3]
    two = labels.matched(("crane", "hoist"), order, "net")
    assert two.numbers is None, "two classes of the model are called crane"
    assert "crane of the data set is not among the 4 classes of model net" in two.refused


@pytest.mark.parametrize(
    ("classes", "numbers", "order", "outputs", "wanted"),
    [
        (FRUIT, "", ("plum", "pear", "apple"), 3, [2, 1, 0]),
        (FRUIT, "", None, 3, [0, 1, 2]),
        (("3", "10"), "model's", None, 2, [1, 0]),  # as a folder lists them
        (("0", "1", "2"), "model's", (), 5, [0, 1, 2]),
        (("0", "1", "2"), "published", (), 3, [0, 1, 2]),
        (("0", "1", "2"), "model's", ("nought", "one", "two"), 3, [0, 1, 2]),
        (("0", "1", "2"), "published", ("2", "1", "0"), 3, [2, 1, 0]),
    ],
)
def test_orders_that_can_be_brought_together(classes, numbers, order, outputs, wanted) -> None:  # type: ignore[no-untyped-def]
    found = data(classes, numbers).matched(order, outputs, "net")
    assert found.refused == ""
    assert found.numbers is not None
    assert found.numbers.tolist() == wanted


@pytest.mark.parametrize(
    ("classes", "numbers", "order", "outputs", "words"),
    [
        (FRUIT, "", (), 3, "nothing says in which order model net answers them"),
        (FRUIT, "", ("apple", "pear", "cherry"), 3, "plum of the data set is not among"),
        (FRUIT, "", ("apple", "pear", "plum"), 4, "the labels name 3 classes and model net scores 4"),
        (FRUIT, "", None, 4, "the labels name 3 classes and model net scores 4"),
        (("0", "1", "2"), "model's", (), 2, "has a class 2 and model net scores 2"),
        (("0", "1", "2"), "published", (), 1000, "has 3 classes and model net scores 1,000"),
        (("0", "1", "2"), "published", ("nought", "one", "two"), 3, "are not among"),
    ],
)
def test_orders_that_cannot_say_how_to_give_one(classes, numbers, order, outputs, words) -> None:  # type: ignore[no-untyped-def]
    found = data(classes, numbers).matched(order, outputs, "net")
    assert found.numbers is None
    assert words in found.refused
    assert "--labels FILE" in found.refused


def test_a_file_of_classes(tmp_path: Path) -> None:
    file = tmp_path / "classes.txt"
    file.write_text("\ufeffapple\r\npear\n\n", encoding="utf-8")
    assert labels.read(file) == ("apple", "pear")
    for text, words in (("apple\n\npear\n", "line 2 names no class"), ("apple", "1 lines"), ("", "0 lines")):
        file.write_text(text)
        with pytest.raises(InputError, match=words):
            labels.read(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        labels.read(file)
    with pytest.raises(InputError, match="cannot be read"):
        labels.read(tmp_path / "absent")


def test_what_exporters_write() -> None:
    assert labels.of_metadata("{0: 'tench', 1: 'goldfish'}") == ("tench", "goldfish")
    assert labels.of_metadata("tench\ngoldfish") == ("tench", "goldfish")
    for nothing in ("", "{0: 'tench', 2: 'goldfish'}", "{", "__import__('os')", "{0: print()}", "(" * 10_000):
        assert labels.of_metadata(nothing) == ()


def test_another_order_is_told_only_where_it_explains_far_more() -> None:
    random = np.random.default_rng(0)
    truth = random.integers(0, 10, 500)
    turned = np.array([3, 1, 2, 0, 4, 5, 9, 7, 8, 6])
    answers = np.where(random.random(500) < 0.9, turned[truth], random.integers(0, 10, 500))
    found = labels.explained(truth, answers, float((answers == truth).mean()))
    assert found is not None
    assert found.right > 0.85
    assert all(found.order[turned[number]] == number for number in range(10))
    assert labels.explained(truth, truth, 1.0) is None
    assert labels.explained(truth, random.integers(0, 10, 500), 0.1) is None, "guesses are explained by none"
    few = np.arange(30)
    assert labels.explained(few, few[::-1], 0.0) is None, "one image a class fits any order"


def test_imagenets_classes_are_known_by_name_and_have_the_usual_places(tmp_path: Path) -> None:
    order = labels.read("imagenet")
    assert len(order) == len(set(order)) == 1000
    numbers = [labels.WORDNET.match(line)[1] for line in order]  # type: ignore[index]
    assert numbers == sorted(numbers)
    wanted = {
        "n01440764": 0, "tench": 0, "great_white_shark": 2, "crane, hoist": None, "n02012849": 134,
        "n03126707": 517, "Siamese cat": 284, "maillot, tank suit": 639, "toilet tissue": 999,
    }  # fmt: skip
    for name, place in wanted.items():
        found = labels.matched((name,), order, "net").numbers
        assert (None if found is None else int(found[0])) == place, name
    assert labels.file_of("imagenet") == "imagenet"
    assert labels.file_of("classes.txt") == str(Path("classes.txt").absolute())
    with pytest.raises(InputError, match=r"cannot be read .* or imagenet or alphabetical"):
        labels.read(tmp_path / "none.txt")


def test_a_folder_named_by_wordnet_numbers_is_refused_with_what_would_help() -> None:
    classes = ("n01440764", "n02012849")
    assert "--labels imagenet" in data(classes, "").matched((), 1000, "net").refused
    found = data(classes, "").matched(labels.read("imagenet"), 1000, "net").numbers
    assert found is not None
    assert found.tolist() == [0, 134]
