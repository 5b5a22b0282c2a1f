"""The page of predictions, on a recorded run: the images that a filter asks for, what was taken for what."""

import dataclasses

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QStyleOptionViewItem

from bench.results import gallery
from bench.results.gallery import Answers, Images
from bench.results.records import Case
from gui.base.theme import DARK, LIGHT
from gui.pages.predictions import (
    Answered,
    Filter,
    PredictionsPage,
    image_facts,
    image_words,
    picture,
    read_answers,
)
from tests.gui.recorded import Shown, copied


class Answers_(Shown):
    """Waits for the files, which are read on a thread."""

    def open(self, *args, **more):
        super().open(*args, **more)
        self.wait()

    def choose(self, key, words):
        super().choose(key, words)
        self.wait()

    def wait(self):
        page = self.page
        if not self.empty_shown:
            self.qtbot.waitUntil(lambda: not page.reading.busy)
        self.redraw.flush()

    @property
    def indices(self):
        return self.page.grid.source.indices.tolist()


@pytest.fixture
def shown(qtbot):
    made = Answers_(qtbot, PredictionsPage)
    made.open()
    made.choose("model", "ece408-low")
    return made


def case(backend="engine-cpu", model="ece408-low"):
    return Case(model=model, backend=backend, precision="fp32", batch=4, images=40)


def rewritten(path, backend="ort-cpu", **columns):
    """Another backend's answers changed: what is given replaces what was recorded."""
    file = gallery.answers_path(path, case(backend))
    with np.load(file) as held:
        kept = dict(held)
    np.savez(file, **(kept | columns))


def test_an_empty_page_says_what_fills_it(qtbot):
    made = Answers_(qtbot, PredictionsPage)
    assert made.empty_shown
    assert "F5" in made.page._empty.text()


def test_a_run_whose_files_are_gone_says_so(qtbot, tmp_path):
    path = copied(tmp_path)
    for file in (path / "predictions").iterdir():
        file.unlink()
    made = Answers_(qtbot, PredictionsPage)
    made.open(path)
    assert made.empty_shown
    assert "not kept" in made.page._empty.text()


def test_all_images_are_shown_with_label_answers_and_confidence(shown):
    shown.choose("shown", "All images")
    assert shown.indices == list(range(40))
    answered = shown.page._answered
    assert answered.names == ("engine-cpu", "ort-cpu")
    held = gallery.load_answers(gallery.answers_path(shown.state.folder, case()))
    text = shown.page.grid.source.index(7, 0).data().splitlines()
    names = answered.images.classes
    assert text[0] == f"image 7, {names[held.label[7]]}"
    assert text[1].startswith(f"engine-cpu: {names[held.predicted[7]]}, ")
    mark = "✓" if held.predicted[7] == held.label[7] else "✕"
    assert text[1].endswith(f"% {mark}")
    image = picture(answered, 7)
    assert (image.width(), image.height()) == (28, 28)
    assert image.pixelColor(14, 14).red() == answered.images.pixels[7, 14, 14]


def test_of_many_contenders_an_image_tells_each_in_a_line(shown):
    few = shown.page._answered
    lines = {}
    for count in (2, 9):
        names = tuple(f"engine-cpu {n}" for n in range(count))
        told = image_facts(dataclasses.replace(few, names=names, answers=few.answers[:1] * count), 7, LIGHT)
        lines[count] = told.split("<br>")
        assert all(any(name in line for line in lines[count]) for name in names)
    assert len(lines[2]) == 2 + 2 * 2
    assert len(lines[9]) == 2 + 9


def test_wrong_ones_are_those_whose_answer_is_not_the_label(shown):
    held = gallery.load_answers(gallery.answers_path(shown.state.folder, case()))
    shown.choose("shown", "Wrong on the one chosen")
    assert shown.indices == np.flatnonzero(held.predicted != held.label).tolist() != []
    assert shown.page.count.text().startswith(f"{len(shown.indices)} of 40 images")
    shown.page.reset.click()
    assert len(shown.indices) == 40
    assert not shown.page.reset.isEnabled()


def test_no_disagreement_is_told_in_words_and_one_is_found(shown, qtbot, tmp_path):
    shown.choose("shown", "Backends disagree")
    assert shown.indices == []
    assert shown.page.grid.nothing == "All backends give the same answer to every image."
    path = copied(tmp_path)
    held = gallery.load_answers(gallery.answers_path(path, case("ort-cpu")))
    predicted = held.predicted.copy()
    predicted[11] = (predicted[11] + 1) % 10
    rewritten(path, predicted=predicted)
    made = Answers_(qtbot, PredictionsPage)
    made.open(path)
    made.choose("model", "ece408-low")
    made.choose("shown", "Backends disagree")
    assert made.indices == [11]
    assert "same answer from all backends: 39" in made.page.count.text()


def test_a_class_and_an_order_are_chosen(shown):
    names = shown.page._answered.images.classes
    shown.choose("shown", "All images")
    shown.choose("label", names[9])
    labels = shown.page._answered.labels
    assert shown.indices == np.flatnonzero(labels == 9).tolist() != []
    shown.choose("label", "All")
    shown.choose("order", "Least confident first")
    confidence = shown.page._answered.answers[0].confidence[shown.indices]
    assert (np.diff(confidence) >= 0).all()


def test_the_confusion_matrix_counts_labels_against_answers(shown):
    table = shown.page.confusion
    held = gallery.load_answers(gallery.answers_path(shown.state.folder, case()))
    counts = table.source.counts
    assert counts.sum() == 40
    assert counts.trace() == (held.predicted == held.label).sum()
    row, column = np.argwhere(counts * (1 - np.eye(len(counts), dtype=int)))[0]
    classes = table.source.classes
    wanted = (held.label == classes[row]) & (held.predicted == classes[column])
    assert counts[row, column] == wanted.sum()
    assert table.source.index(row, column).data() == str(wanted.sum())


def test_a_click_on_a_cell_shows_its_images_and_keys_reach_it_too(shown, qtbot):
    table = shown.page.confusion
    counts, classes = table.source.counts, table.source.classes
    row, column = map(int, np.argwhere(counts * (1 - np.eye(len(counts), dtype=int)))[0])
    at = table.visualRect(table.source.index(row, column)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert len(shown.indices) == counts[row, column]
    labels, predicted = shown.page._answered.labels, shown.page._answered.predicted[0]
    assert {(labels[i], predicted[i]) for i in shown.indices} == {(classes[row], classes[column])}
    assert "took for" in shown.page.count.text()
    shown.page.reset.click()
    table.setFocus()
    table.setCurrentIndex(table.source.index(row, row))
    qtbot.keyClick(table, Qt.Key.Key_Return)
    assert len(shown.indices) == counts[row, row]


def test_the_selected_image_is_shown_large_with_every_answer(shown, qtbot):
    grid = shown.page.grid
    shown.choose("shown", "All images")
    qtbot.mouseClick(grid.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(30, 30))
    assert "Image 0" in shown.page.detail.facts.text()
    grid.setFocus()
    qtbot.keyClick(grid, Qt.Key.Key_Right)
    assert "Image 1" in shown.page.detail.facts.text()
    assert "ort-cpu" in shown.page.detail.facts.text()
    assert not shown.page.detail.picture.pixmap().isNull()


def test_the_place_in_the_list_stays_while_a_run_goes_on(shown, qtbot):
    grid = shown.page.grid
    bar = grid.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    grid.setCurrentIndex(grid.source.index(1, 0))
    bar.setValue(bar.maximum())
    shown.state.add([m for m in shown.state.measurements if m.case.model != "ece408-low"])
    shown.redraw.flush()
    assert bar.value() == bar.maximum() > 0


def test_a_backend_is_chosen_and_told_to_the_inspector(shown):
    shown.choose("focus", "ort-cpu")
    assert shown.state.case == case("ort-cpu")
    assert "ort-cpu" in shown.page._heading.text()
    shown.state.select(case("engine-cpu", "lenet5-digits"))
    shown.redraw.flush()
    shown.wait()
    assert shown.page._choices["model"].currentText() == "lenet5-digits"
    assert "engine-cpu" in shown.page._heading.text()


def test_answers_without_their_images_are_shown_all_the_same(qtbot, tmp_path):
    path = copied(tmp_path)
    for file in (path / "predictions").glob("images-*"):
        file.unlink()
    made = Answers_(qtbot, PredictionsPage)
    made.open(path)
    assert len(made.indices) == 40
    assert "has not kept its images" in made.page.count.text()
    made.page.grab()  # draws the places of the missing images


def test_a_broken_file_costs_one_contender_and_is_told(qtbot, tmp_path):
    path = copied(tmp_path)
    gallery.answers_path(path, case("ort-cpu", "lenet5-digits")).write_bytes(b"not an archive")
    made = Answers_(qtbot, PredictionsPage)
    made.open(path)
    assert made.page._answered.names == ("engine-cpu",)
    assert "cannot be read" in made.page.count.text()


def test_unlabelled_images_have_no_matrix_and_none_is_wrong(qtbot, tmp_path):
    path = copied(tmp_path)
    for backend in ("engine-cpu", "ort-cpu"):
        rewritten(path, backend, label=np.full(40, -1))
    made = Answers_(qtbot, PredictionsPage)
    made.open(path)
    made.choose("model", "ece408-low")
    assert made.page.confusion.isHidden()
    made.choose("shown", "Wrong on any backend")
    assert made.indices == []
    assert "no labels" in made.page.grid.nothing


def test_why_labels_say_nothing_of_the_answers_is_told(qtbot, tmp_path):
    path = copied(tmp_path)
    for backend in ("engine-cpu", "ort-cpu"):
        rewritten(path, backend, label=np.full(40, -1))
    file = path / "results.jsonl"
    text = file.read_text().replace('"accuracy":{', '"accuracy":{"refused":"give --labels FILE",')
    file.write_text(text)
    made = Answers_(qtbot, PredictionsPage)
    made.open(path)
    made.choose("model", "ece408-low")
    made.choose("shown", "Wrong on any backend")
    assert "not known which answers are right" in made.page.grid.nothing
    assert "give --labels FILE" in made.page.grid.nothing


def test_a_backend_kept_at_another_batch_size_stands_beside_and_says_so(qtbot, tmp_path):
    path = copied(tmp_path)
    here = gallery.answers_path(path, case("ort-cpu", "lenet5-digits"))
    here.rename(here.with_name(here.name.replace("-b4-", "-b1-")))
    made = Answers_(qtbot, PredictionsPage)
    made.open(path)
    made.choose("batch", "4")
    assert made.page._answered.names == ("engine-cpu", "ort-cpu (batch 1)")


def test_ten_thousand_images_are_a_model_and_not_ten_thousand_widgets(qtbot):
    made = Answers_(qtbot, PredictionsPage)
    made.open()
    count = 10_000
    label = np.arange(count) % 10
    answers = Answers(label, label, np.ones(count, np.float32), np.ones(count, bool))
    pixels = np.zeros((count, 28, 28), np.uint8)
    many = Answered(("engine-cpu", "ort-cpu"), (answers, answers), Images(pixels, tuple("abcdefghij")))
    widgets = len(made.page.findChildren(object))
    made.page._answered = many
    made.page._show()
    grid = made.page.grid
    grid.scrollToBottom()
    made.page.grab()
    assert grid.source.rowCount() == count
    assert len(made.page.findChildren(object)) < widgets + 20
    assert "image 9,999, j" in image_words(many, 9_999)


def test_colour_images_and_missing_ones_are_drawn(qtbot):
    answers = Answers(np.array([1, 0]), np.array([1, 1]), np.ones(2, np.float32), np.ones(2, bool))
    pixels = np.zeros((1, 20, 40, 3), np.uint8)
    pixels[..., 0] = 200
    answered = Answered(("engine-cpu",), (answers,), Images(pixels, ("cat", "dog")))
    assert picture(answered, 0).pixelColor(3, 3).getRgb()[:3] == (200, 0, 0)
    assert picture(answered, 1) is None
    assert answered.chosen(Filter("wrong"), 0).tolist() == [1]


def test_the_theme_is_followed_and_cells_fit_their_words(shown):
    before = shown.page.grid.viewport().grab().toImage()
    shown.theming.choose("dark")
    shown.redraw.flush()
    assert shown.page.grid.viewport().grab().toImage() != before
    cells = shown.page.confusion.source
    empty = [
        index.data(Qt.ItemDataRole.BackgroundRole).name().upper()
        for row in range(cells.rowCount())
        for index in (cells.index(row, column) for column in range(cells.columnCount()))
        if not index.data()
    ]
    assert empty
    assert set(empty) <= {DARK.paper.upper(), DARK.alternate.upper()}
    size = shown.page.grid.delegate.sizeHint(QStyleOptionViewItem(), shown.page.grid.source.index(0, 0))
    metrics = shown.page.grid.fontMetrics()
    assert size.width() > metrics.horizontalAdvance("Ankle boot  100 %")


def test_what_cannot_be_read_is_told_and_nothing_raises(tmp_path):
    from gui.pages.predictions import Files

    found = read_answers(Files((("engine-cpu", tmp_path / "none.npz"),), tmp_path / "images.npz"))
    assert len(found) == 0
    assert "none.npz" in found.problems[0]
    assert found.chosen(Filter(), 0).tolist() == []


def test_it_opens_on_what_differs_or_is_wrong_says_so_and_follows_the_model_chosen(shown):
    page = shown.page
    assert page._choices["shown"].currentText() in ("Backends disagree", "Wrong on any backend")
    assert f"images: {page._choices['shown'].currentText().lower()}" in page.count.text()
    shown.choose("shown", "All images")
    assert "only:" not in page.count.text()
    shown.state.add(shown.state.measurements)  # the same run goes on
    shown.redraw.flush()
    assert page._choices["shown"].currentText() == "All images", "what the user chose stays"
    models = page._choices["model"].offered
    if len(models) > 1:
        other = next(model for model in models if model != page._choices["model"].currentData())
        shown.state.model_chosen.emit(other)
        shown.redraw.flush()
        assert page._choices["model"].currentData() == other
