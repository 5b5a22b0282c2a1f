"""Predictions: the images with their labels and every contender's answer; filters; the confusion matrix."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import (
    QHBoxLayout,
    QWidget,
)

from bench.results import gallery
from bench.results.records import Case, Measurement
from bench.results.rows import label, title
from gui.base.background import Background
from gui.base.boxes import HORIZONTAL, as_column, filled, splitter
from gui.base.theme import PAGE_MARGINS
from gui.pages.page import Page
from gui.pages.predictions.answer_grid import NOTHING, AnswerDetail, AnswerGrid, ConfusionTable
from gui.pages.predictions.answers import ORDERS, SHOWN, Answered, Files, Filter, agreeing, read
from gui.widgets.controls import ChoiceBar, Label, as_tip, push_button

ORDER = 30


class PredictionsPage(Page):
    """The page of images and answers."""

    title = "Predictions"

    def empty_text(self) -> str:
        if self.state.empty:
            return (
                "The images, each with its label and what every backend took it for: they appear here as a "
                "comparison is measured (F5)."
            )
        if any(_answered(m) for m in self.state.measurements):
            return "The images and answers of this run are not kept: its folder has no file of them."
        return (
            "No case of this run has answered images yet. They come at the end of each case, where the model "
            "takes images and the number of images is not 0."
        )

    def has_content(self) -> bool:
        return any(map(self._readable, self.state.measurements))

    def _readable(self, measurement: Measurement) -> bool:
        """Whether a case's answers are on the disk. A thinned run keeps those of a few cases only."""
        folder = self.state.folder
        return (
            _answered(measurement)
            and folder is not None
            and gallery.answers_path(folder, measurement.case).is_file()
        )

    def build(self) -> QWidget:
        self._answered, self._files = NOTHING, Files()
        self._cases: dict[str, Case] = {}
        self._refused = ""  # why labels say nothing of these answers
        self._cell: tuple[int, int] | None = None
        self._image = -1  # the selected one's index in the data set
        self._confused = (NOTHING, -1)  # what the matrix shows
        self.reading = Background(lambda _: None, self)  # what cannot be read stands among the answers
        self._bar = ChoiceBar(
            [
                ("model", "&Model"),
                ("images", "I&mages"),
                ("batch", "&Batch"),
                ("focus", "B&ackend"),
                ("shown", "&Show"),
                ("label", "&Class"),
                ("order", "&Order"),
            ]
        )
        self._bar.chosen.connect(self._on_chosen)
        self._choices = self._bar.boxes
        self._choices["shown"].offer(SHOWN)
        self._choices["order"].offer(ORDERS)
        self.grid = AnswerGrid(self.theming)
        self.grid.picked.connect(self._on_image)
        self.count = Label(role="muted", wrap=True)
        self.reset = push_button("Show a&ll", lambda: self._show_all(), tip="Remove all filters")
        self.confusion = ConfusionTable(self.theming)
        self.confusion.picked.connect(self._on_cell)
        self.detail = AnswerDetail()
        self._heading = Label(role="heading")
        self._hint = Label(
            "Row: label. Column: answer. Click a cell to see its images.", role="muted", wrap=True
        )
        left = as_column(filled(QHBoxLayout(), (self.count, 1), self.reset), (self.grid, 1))
        right = as_column(self._heading, self._hint, (self.confusion, 1), self.detail)
        split = splitter("predictions-columns", HORIZONTAL, left, right, sizes=[520, 480], stretch=(3, 2))
        return as_column(self._bar, (split, 1), margins=PAGE_MARGINS)

    # ---------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        ours = [m for m in self.state.measurements if self._readable(m)]
        model = self._bar.offer("model", {m.case.model: title(m.case.model) for m in ours})
        ours = [m for m in ours if m.case.model == model]
        most_first = sorted({m.case.images for m in ours}, reverse=True)
        images = self._bar.offer("images", {n: f"{n:,}" for n in most_first})
        ours = [m for m in ours if m.case.images == images]
        batch = self._bar.offer("batch", {b: f"{b:,}" for b in sorted({m.case.batch for m in ours})})
        beside = contenders(ours, int(batch))  # type: ignore[call-overload]
        self._cases = {name: m.case for name, m in beside.items()}
        self._refused = next((m.accuracy.refused for m in beside.values() if m.accuracy), "")
        self._bar.offer("focus", {name: name for name in beside})
        folder, case = self.state.folder, next(iter(self._cases.values()))
        assert folder is not None
        dataset = next((info.dataset for info in self.state.run.models if info.name == model), "")
        # A case measured again has its answers written anew: the measurement's start tells the two apart.
        files = Files(
            tuple((n, gallery.answers_path(folder, c)) for n, c in self._cases.items()),
            gallery.images_path(folder, dataset, case) if dataset else None,
            tuple(m.started_at for m in beside.values()),
        )
        if files != self._files:
            self._files = files
            self.reading.start("answers", lambda: read(files), self._on_read)
            if not len(self._answered):
                self.grid.nothing = "Reading the images …"
        else:
            self._show()

    def select(self) -> None:
        case = self.state.case
        measurement = self.state.measurement(case)
        if case is None or measurement is None or not self._readable(measurement):
            return
        wanted: dict[str, object] = {"model": case.model, "images": case.images, "batch": case.batch}
        wanted["focus"] = name_of(case)
        if self._bar.ask(wanted):
            self.invalidate()

    def showcase(self) -> None:
        if self._body is None:
            return
        for filter_key in ("wrong", "all"):  # where none is wrong, whichever comes first
            self._choices["shown"].choose(filter_key)
            self._show()
            if self.grid.source.rowCount():
                self.grid.setCurrentIndex(self.grid.source.index(0))
                return

    @property
    def at_rest(self) -> bool:
        return self._body is None or not self.reading.busy

    def _on_read(self, answered: Answered) -> None:
        self._answered, self._cell = answered, None
        known = answered.classes() if len(answered) else []
        classes: dict[int | None, str] = {None: "All", **{c: answered.class_name(c) for c in known}}
        self._bar.offer("label", classes if known else {})
        self._choices["shown"].setEnabled(len(answered) > 0)
        self._show()

    def _show(self) -> None:
        answered, focus = self._answered, self._focus()
        wanted = Filter(
            str(self._choices["shown"].currentData()),
            self._choices["label"].currentData(),
            self._cell,
            str(self._choices["order"].currentData()),
        )
        indices = answered.chosen(wanted, focus)
        self.grid.nothing = self._why_none(wanted.shown) if not len(indices) else ""
        self.grid.show_images(answered, indices)
        if self._image in indices:
            row = int((indices == self._image).argmax())
            self.grid.setCurrentIndex(self.grid.source.index(row))
        parts = [f"{len(indices):,} of {len(answered):,} images"]
        if self._cell is not None:
            label, predicted = map(answered.class_name, self._cell)
            parts.append(f"{label} that {answered.names[focus]} took for {predicted}")
        if len(answered.names) > 1:
            parts.append(f"same answer from all backends: {agreeing(answered):,}")
        if answered.images is not None and len(answered.images) < len(answered):
            parts.append(f"the first {len(answered.images):,} are kept as pictures")
        self.count.setText("; ".join([*parts, *answered.problems]))
        self.reset.setEnabled(wanted.shown != "all" or wanted.label is not None or self._cell is not None)
        self._show_confusion(focus)
        self._show_image()

    def _show_confusion(self, focus: int) -> None:
        answered = self._answered
        if self._confused != (answered, focus):
            self._confused = (answered, focus)
            self.confusion.show_answers(answered, focus)
        labelled = answered.labelled
        self.confusion.setVisible(labelled)
        self._hint.setVisible(labelled)
        who = answered.names[focus] if answered.names else ""
        words = f"Confusion matrix of {who}" if labelled else f"{self._unlabelled()}: no confusion matrix."
        self._heading.setText(words)
        self._heading.setToolTip(as_tip(self._refused))

    def _why_none(self, filter_key: str) -> str:
        if not len(self._answered):
            return " ".join(self._answered.problems) or "Reading the images …"
        if not self._answered.labelled and filter_key.startswith("wrong"):
            return f"{self._unlabelled()}, so none of them is right or wrong. {self._refused}".strip()
        reasons = {
            "wrong": "No image is answered wrong by any backend.",
            "wrong here": f"{self._answered.names[self._focus()]} answers no image wrong.",
            "disagree": "All backends give the same answer to every image.",
        }
        narrowed = self._choices["label"].currentData() is not None or self._cell is not None
        return "No image passes these filters." if narrowed else reasons.get(filter_key, "")

    def _unlabelled(self) -> str:
        return "It is not known which answers are right" if self._refused else "These images have no labels"

    def _show_image(self) -> None:
        self.detail.show_image(self._answered, self._image, self.theming.theme)

    # ------------------------------------------------------------------------------------------- choosing

    def _focus(self) -> int:
        name = self._choices["focus"].currentData()
        return self._answered.names.index(name) if name in self._answered.names else 0

    def _on_chosen(self, key: str) -> None:
        if key in ("shown", "label", "order"):
            self._cell = None if key != "order" else self._cell
            self._show()
            return
        self.invalidate()
        if key == "focus":
            self._cell = None
            self.state.select(self._cases.get(self._choices["focus"].currentData()))

    def _on_cell(self, label: int, predicted: int) -> None:
        self._show_all((label, predicted))

    def _show_all(self, cell: tuple[int, int] | None = None) -> None:
        """Remove all filters. cell: a cell of the confusion matrix to show, None for all."""
        self._cell = cell
        for key in ("shown", "label"):
            self._choices[key].setCurrentIndex(0)
        self._show()

    def _on_image(self, index: int) -> None:
        self._image = index
        self._show_image()


def _answered(measurement: Measurement) -> bool:
    return measurement.accuracy is not None and measurement.accuracy.images > 0


def name_of(case: Case) -> str:
    return label(case.backend, case.precision)


def contenders(measurements: Iterable[Measurement], batch: int) -> dict[str, Measurement]:
    """Measurements by contender, references last. A contender without answers at this batch size is shown
    with those of the nearest size, and its name says so: the batch size should change no answer."""
    nearest: dict[str, Measurement] = {}
    for m in measurements:
        other = nearest.get(name_of(m.case))
        if other is None or _away(m.case.batch, batch) < _away(other.case.batch, batch):
            nearest[name_of(m.case)] = m
    ordered = sorted(nearest.items(), key=lambda item: item[1].reference in ("", item[1].case.backend))
    return {name if m.case.batch == batch else f"{name} (batch {m.case.batch:,})": m for name, m in ordered}


def _away(batch: int, wanted: int) -> float:
    return max(batch / wanted, wanted / batch)


PAGE = PredictionsPage
