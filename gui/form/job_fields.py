"""The job form's fields and how they are laid out, and what is typed into them as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from bench.results.records import stem
from bench.run import options
from bench.words.option import Option
from gui.base.boxes import as_column, filled, scrolled
from gui.base.scale import GAP, TIGHT, WIDE
from gui.form.form_fields import CheckColumn, CheckedText, CheckList, heading
from gui.form.model_note import ModelNote
from gui.form.option_fields import Field, field
from gui.form.rung_choices import RungChoices
from gui.widgets.combo import Combo
from gui.widgets.controls import push_button
from gui.widgets.labels import Label, TermLabel
from kernels.errors import InputError
from kernels.nearest import did_you_mean
from models import labels, names, preparation

BATCHES = {
    "1..256": "1, 2, 4 … 256",
    "1..256; alexnet-digits=1,4": "1, 2, 4 … 256, and two sizes for one model only",
    "1..1024": "1, 2, 4 … 1,024",
    "1,100,1000,10000": "the course's four sizes",
    "1,16,64": "three sizes",
    "1": "one image at a time",
}
LABELS_FILE = "file …"
LABELS = {
    "imagenet": "the 1,000 of the challenge of 2012, as torchvision, Keras and Caffe number them",
    labels.ALPHABETICAL: "that of their names, as a model has it that was trained on such folders",
    LABELS_FILE: "a text file, a class a line, in the model's order",
}
FOLDER = "folder:"
PRESETS: dict[str, Mapping[str, str] | Sequence[str]] = {
    "batch": BATCHES,
    "images": ("100", "1000", "10000"),
    "preprocess": preparation.TITLES,
    "labels": LABELS,
}
Sizes = tuple[tuple[int, ...], dict[str, tuple[int, ...]]]


class JobFields(QWidget):
    """The fields, empty."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._make()
        self._lay_out()

    def _make(self) -> None:
        self.models = CheckList("Models")
        self.open_button = push_button("&Open…", tip="Add an .onnx file (Ctrl+O); or drop one on the window")
        self.backends = CheckList("Backends")
        self.precisions = CheckColumn(columns=4)
        # The fields of options that say how they are called here, by the option's name.
        self.fields: dict[str, Field] = {
            option.name: field(
                option,
                PRESETS.get(option.name, ()),
                self._reading(option) if len(option.fields) > 1 else None,
            )
            for option in options.COMPARE
            if option.label
        }
        # Those that the form itself has to do with.
        self.batches, self.labels, self.axes, self.tune = (
            self.fields[name].widget for name in ("batch", "labels", "dim", "tune-reference")
        )
        self.dataset = Combo("Data set", grows=False)
        self.dataset.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.dataset.setMinimumContentsLength(8)
        titles = names.dataset_titles().items()
        specs = {FOLDER if key.startswith(FOLDER) else key: title for key, title in titles}
        self.dataset.offer({None: "the model's own"} | specs)
        self.note = ModelNote()
        self.rungs = RungChoices()
        self._summary = Label(wrap=True)
        self.run_button = push_button("Run", role="primary", tip="Run the comparison (F5)")
        self.copy_button = push_button(
            "&Copy as command", tip="The command line that runs the same comparison without a window"
        )

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(TIGHT)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        boxes = [made.widget for made in self.fields.values() if isinstance(made.widget, QCheckBox)]
        rows = [(made.option.label, made.widget) for made in self.fields.values() if made.widget not in boxes]
        for text, widget in (rows[0], ("&Data set", self.dataset), *rows[1:]):
            label = TermLabel(text)
            label.setBuddy(widget.box if isinstance(widget, CheckedText) else widget)
            form.addRow(label, widget)
        fields = as_column(
            filled(QHBoxLayout(), (heading("&Models", self.models), 1), self.open_button),
            *(self.models, self.note, heading("&Backends", self.backends), self.backends),
            *(heading("Precision"), self.precisions, heading("Batch sizes, data and measuring"), form),
            *boxes,
            self.rungs,
            1,
            margins=(WIDE, GAP, WIDE, GAP),
            spacing=TIGHT,
        )
        scroll = scrolled(fields, sideways=False)
        # Never narrower than its fields: there is no scrolling sideways.
        scroll.setMinimumWidth(
            fields.minimumSizeHint().width() + scroll.verticalScrollBar().sizeHint().width()
        )
        buttons = filled(QHBoxLayout(), (self.run_button, 1), self.copy_button)
        foot = filled(QVBoxLayout(), self._summary, buttons, margins=(WIDE, GAP, WIDE, GAP))
        filled(QVBoxLayout(self), (scroll, 1), foot, margins=(0, 0, 0, 0), spacing=0)

    def _reading(self, option: Option) -> Callable[[str], Any]:
        """How a line with sizes is read: models by name are those of the list. Raises InputError."""

        def read(line: str) -> Sizes:
            found: Sizes = option.value.read_line(line)
            called = sorted({*self.models.keys, *map(stem, self.models.keys)})
            for model in found[1]:
                if model not in called:
                    hint = did_you_mean(model, called, otherwise="; name one of the list above")
                    raise InputError(f"model {model!r} is not known{hint}")
            return found

        return read


def of_models(models: Sequence[str], own: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """What is said of these models, by path or by stem."""
    called = {*models, *map(stem, models)}
    return {model: values for model, values in own.items() if model in called}
