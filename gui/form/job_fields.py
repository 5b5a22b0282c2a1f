"""The job form's fields and how they are laid out, and what is typed into them as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from bench.commands.parsing import dims, inputs, integers
from bench.kinds.options import batches as batches_text
from bench.results.records import stem
from bench.run import bounds
from gui.base.boxes import filled
from gui.base.scale import GAP, TIGHT, WIDE
from gui.form.form_fields import CheckColumn, CheckedText, CheckList, heading
from gui.form.model_note import ModelNote
from gui.form.rung_choices import RungChoices
from gui.widgets.combo import Combo
from gui.widgets.labels import Label, TermLabel
from kernels.errors import InputError
from kernels.nearest import did_you_mean
from models import labels, names, preparation

BATCHES = {
    "1..256": "1, 2, 4 … 256",
    "1..256; alexnet-digits: 1,4": "1, 2, 4 … 256, and two sizes for one model only",
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
TUNE = (
    "Also run ONNX Runtime (CUDA) in its fastest configuration, and in the fastest whose every layer is "
    "within its bound: all its options are tried once for each case, and the winners are kept"
)
Sizes = tuple[tuple[int, ...], dict[str, tuple[int, ...]]]


class JobFields(QWidget):
    """The fields, empty."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._make()
        self._lay_out()

    def batch_sizes(self, text: str) -> Sizes:
        """The batch field's text → (for every model, by model). Raises InputError."""
        return sizes(text, "batch", bounds.MAX_BATCH, self.models.keys)

    def image_counts(self, text: str) -> Sizes:
        """The image field's text, which may be empty. Raises InputError."""
        return sizes(text, "images", bounds.MAX_IMAGES, self.models.keys, may_be_empty=True)

    def _make(self) -> None:
        self.models = CheckList("Models")
        self.open_button = QPushButton("&Open…")
        self.open_button.setToolTip("Add an .onnx file (Ctrl+O); or drop one on the window")
        self.backends = CheckList("Backends")
        self.precisions = CheckColumn(columns=4)
        self.batches = CheckedText(
            "Batch sizes",
            lambda text: self.batch_sizes(text),
            BATCHES,
            "for example 1,2,4 or 1..1024",
        )
        self.batches.box.setToolTip(
            "For example 1,2,4, or 1..1024 for 1, 2, 4 …; for one model only: 1..256; alexnet-digits: 1,4"
        )
        self.dataset = Combo()
        self.dataset.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.dataset.setMinimumContentsLength(8)
        self.dataset.setAccessibleName("Data set")
        self.dataset.addItem("the model's own", None)
        for key, title in names.dataset_titles().items():
            spec = FOLDER if key.startswith(FOLDER) else key
            self.dataset.addItem(title, spec)
            self.dataset.setItemData(self.dataset.count() - 1, title, Qt.ItemDataRole.ToolTipRole)
        self.images = CheckedText(
            "Images",
            lambda text: self.image_counts(text),
            {"100": "", "1000": "", "10000": ""},
            "the model's own number",
        )
        self.images.box.setToolTip("For example 100,1000; for one model only: 100; alexnet-digits: 32")
        self.preprocess = CheckedText(
            "Preprocessing", preprocess, preparation.TITLES, "the model's own, else unit"
        )
        self.preprocess.box.setToolTip(
            "What is done to an image: a name of the list, MEAN,STD, or a .toml file with some of "
            + ", ".join(preparation.KEYS)
        )
        self.labels = CheckedText("Order of classes", labels_file, LABELS, "the model's own; or a file")
        self.labels.box.setToolTip(
            "In which order a model's file answers its classes: a text file, a class a line, where "
            "neither the "
            "file says it nor folders are named by number"
        )
        self.scores = CheckedText("Scores", str, (), "found by its shape")
        self.scores.box.setToolTip("The output that holds the class scores, where a file has several")
        self.given = CheckedText("Other inputs", given_inputs, (), "beside images: NAME=NUMBER")
        self.given.box.setToolTip(
            "What inputs beside the images are given, the same for each image; several with blanks between"
        )
        self.axes = CheckedText("Open axes", axis_sizes, (), "guessed; or height=224")
        self.axes.box.setToolTip(
            "Sizes of axes that a model's file leaves open beside its batch, NAME=SIZE; several with blanks "
            "between. They are kept with the model"
        )
        self.note = ModelNote()
        self.l2 = Combo()
        self.l2.setAccessibleName("L2 cache")
        self.l2.addItem("warm: passes follow each other", "warm")
        self.l2.addItem("cold: emptied before each pass", "cold")
        self.budget = QDoubleSpinBox(
            minimum=0.05, maximum=600.0, decimals=2, singleStep=0.25, suffix=" s a case"
        )
        self.budget.setToolTip(
            "The most seconds of samples; sampling stops earlier once the interval is within 1 %"
        )
        self.threads = QSpinBox(minimum=0, maximum=bounds.MAX_THREADS)
        self.threads.setSpecialValueText("one a core")
        self.threads.setToolTip("Threads of the CPU backends, for ours and for ONNX Runtime")
        self.instances = QSpinBox(minimum=1, maximum=bounds.MAX_INSTANCES, suffix=" or more of each")
        self.instances.setToolTip(
            "Instances (sessions) of each backend at least, timed in turn. The interval then includes how "
            "they differ, by their addresses and by what is chosen when a session is created"
        )
        for box in (self.budget, self.threads, self.instances):
            box.lineEdit().setTextMargins(TIGHT, 0, 0, 0)
        self.layers = QCheckBox("Measure &every layer")
        self.layers.setToolTip("Time and errors of each operator, measured in separate passes")
        self.tune = QCheckBox("T&une the reference")
        self.tune.setAccessibleDescription(TUNE)
        self.tune.setToolTip(TUNE)
        self.end_to_end = QCheckBox("End to end, as a &rate")
        self.end_to_end.setToolTip(
            "Also measure host images to host answers as a rate: images travel as bytes, several batches are "
            "in flight, copies and kernels are at work at once. ONNX Runtime gets the same"
        )
        self.rungs = RungChoices()
        self._summary = Label()
        self._summary.setWordWrap(True)
        self.run_button = QPushButton("Run")
        self.run_button.setProperty("role", "primary")
        self.run_button.setToolTip("Run the comparison (F5)")
        self.copy_button = QPushButton("&Copy as command")
        self.copy_button.setToolTip("The command line that runs the same comparison without a window")

    def _lay_out(self) -> None:
        fields = QWidget()
        column = QVBoxLayout(fields)
        column.setContentsMargins(WIDE, GAP, WIDE, GAP)
        column.setSpacing(TIGHT)
        top = filled(QHBoxLayout(), (heading("&Models", self.models), 1), self.open_button)
        column.addLayout(top)
        column.addWidget(self.models)
        column.addWidget(self.note)
        column.addWidget(heading("&Backends", self.backends))
        column.addWidget(self.backends)
        column.addWidget(heading("Precision"))
        column.addWidget(self.precisions)
        column.addWidget(heading("Batch &sizes", self.batches.box))
        column.addWidget(self.batches)
        column.addWidget(heading("Data and measuring"))
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(TIGHT)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for text, field in (
            ("&Data set", self.dataset),
            ("&Images", self.images),
            ("&Prepare", self.preprocess),
            ("Classes", self.labels),
            ("Scores", self.scores),
            ("Inputs", self.given),
            ("Axes", self.axes),
            ("&L2 cache", self.l2),
            ("&Time", self.budget),
            ("I&nstances", self.instances),
            ("Thre&ads", self.threads),
        ):
            label = TermLabel(text)
            label.setBuddy(field.box if isinstance(field, CheckedText) else field)
            form.addRow(label, field)
        column.addLayout(form)
        column.addWidget(self.layers)
        column.addWidget(self.tune)
        column.addWidget(self.end_to_end)
        column.addWidget(self.rungs)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidget(fields)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Never narrower than its fields: there is no scrolling sideways.
        scroll.setMinimumWidth(
            fields.minimumSizeHint().width() + scroll.verticalScrollBar().sizeHint().width()
        )
        foot = filled(QVBoxLayout(), self._summary, margins=(WIDE, GAP, WIDE, GAP))
        buttons = filled(QHBoxLayout(), (self.run_button, 1), self.copy_button)
        foot.addLayout(buttons)
        filled(QVBoxLayout(self), (scroll, 1), foot, margins=(0, 0, 0, 0), spacing=0)


def numbers(text: str, what: str, most: int) -> tuple[int, ...]:
    """As the command line reads them, without its dashes in the sentence. Raises InputError."""
    try:
        found = integers(text, what)
    except InputError as error:
        raise InputError(str(error).removeprefix(f"--{what} ")) from None
    for value in found:
        if not 1 <= value <= most:
            raise InputError(f"{value:,} is out of range; 1 to {most:,} works")
    return found


def sizes(text: str, what: str, most: int, models: Sequence[str], may_be_empty: bool = False) -> Sizes:
    """ "1..256; alexnet-digits: 1,4" → (for every model, by model as it is called in the text).

    Raises InputError, also for a model that is not in the list.
    """
    general, *parts = (part.strip() for part in text.split(";"))
    called = sorted({*models, *map(stem, models)})
    if may_be_empty and ":" in general:
        general, parts = "", [general, *parts]
    if ":" in general and general.rpartition(":")[0].strip() in called:
        raise InputError(f"what is for every model comes first, as in 1,2; {general}")
    own = {}
    for part in filter(None, parts):
        model, colon, numerals = (word.strip() for word in part.rpartition(":"))
        if not colon:
            raise InputError(f"{part!r} is for no model: write it as in 1..256; alexnet-digits: 1,4")
        if model not in called:
            hint = did_you_mean(model, called, otherwise="; name one of the list above")
            raise InputError(f"model {model!r} is not known{hint}")
        own[model] = numbers(numerals, what, most)
    return (numbers(general, what, most) if general or not may_be_empty else ()), own


def preprocess(text: str) -> str | None:
    """As models.preparation understands it; None where empty. Raises InputError."""
    if text:
        preparation.parse(text)
    return text or None


def labels_file(text: str) -> str | None:
    """ "alphabetical", an order known by name, or a file of classes; None where empty. Raises InputError."""
    if text and text != labels.ALPHABETICAL:
        labels.read(text)
    return text or None


def given_inputs(text: str) -> dict[str, str]:
    """ "scale=1 mask=mask.npy". Raises InputError."""
    try:
        return inputs(text.split())
    except InputError as error:
        raise InputError(str(error).removeprefix("--input ")) from None


def axis_sizes(text: str) -> dict[str, int]:
    """ "height=224 width=224". Raises InputError."""
    try:
        return dims(text.split())
    except InputError as error:
        raise InputError(str(error).removeprefix("--dim ")) from None


def axes_text(sizes: Mapping[str, int]) -> str:
    """As the form's field takes them."""
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def of_models(models: Sequence[str], own: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """What is said of these models, by path or by stem."""
    called = {*models, *map(stem, models)}
    return {model: values for model, values in own.items() if model in called}


def sizes_text(general: tuple[int, ...], own: Mapping[str, tuple[int, ...]]) -> str:
    """As the form's fields take them: "1..256; alexnet-digits: 1,4"."""
    parts = [batches_text(general), *(f"{model}: {batches_text(values)}" for model, values in own.items())]
    return "; ".join(filter(None, parts))
