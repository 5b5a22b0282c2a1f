"""The form of a comparison: it makes a Job, says what is wrong while it is filled in, and estimates the
time.

The sizes of open axes that models were compared with are kept from one start to the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QEvent, QSettings, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from bench.questions.asked import Takes
from bench.results.names import plain_path, with_distinct_stems
from bench.results.records import BackendInfo, Job, stem
from bench.run import bounds, chosen_rungs, defaults, elsewhere, options
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.words import palette
from bench.words.called import command_line
from bench.words.option import Option, by_name, numbers_text
from bench.words.units import clock
from gui.base.boxes import as_column, filled, kept_list, scrolled
from gui.base.theme import GAP, TIGHT, WIDE
from gui.form.fields import (
    CheckColumn,
    CheckedText,
    CheckList,
    Field,
    ModelNote,
    RungChoices,
    field,
    fill,
    heading,
    values,
)
from gui.form.where_box import WhereBox
from gui.sessions.where import Where
from gui.widgets.controls import Combo, Label, TermLabel, push_button, set_role
from kernels.errors import InputError
from kernels.nearest import did_you_mean
from kernels.precision import MIXED
from models import labels, names, preparation

AXES = "axes"
MOST_MODELS = 64  # models


class KeptAxes:
    """Sizes of open axes, kept in the settings: for each model file the text of the form's field."""

    def __init__(self, settings: QSettings) -> None:
        self._settings = settings
        self._shown = ""  # the text that was filled in for the chosen model

    def keep(self, job: Job) -> None:
        """Store the sizes that a job has for each of its files."""
        texts = self._texts()
        for model in map(plain_path, job.models):
            if model not in names.models():
                texts.pop(model, None)
                if text := by_name(options.COMPARE, "dim").value.line(job.dims_of(model)):
                    texts[model] = text
        self._settings.setValue(AXES, json.dumps(dict([*texts.items()][-MOST_MODELS:])))

    def of(self, models: Sequence[str], text: str) -> str:
        """The text for the field once these models are chosen. text: what the field shows now. It stays if
        the user typed it or if several files are chosen; models of the catalogue have no open axes."""
        files = [model for model in models if model not in names.models()]
        if len(files) > 1 or text not in ("", self._shown):
            return text
        self._shown = self._texts().get(files[0], "") if files else ""
        return self._shown

    def _texts(self) -> dict[str, str]:
        try:
            texts = json.loads(str(self._settings.value(AXES, "{}")))
        except ValueError:
            return {}
        return texts if isinstance(texts, dict) else {}


MANY = 3  # with more names than that, only their number is shown


def in_a_line(job: Job, backends: Sequence[str]) -> str:
    """A job in one line: models, backends, precisions and batch sizes. backends: those that are compared."""
    parts = [
        _several([stem(model) for model in job.models], "models"),
        _several(list(backends), "backends"),
        ", ".join(job.precisions),
        f"batch {numbers_text(job.batches)}",
    ]
    return "  ·  ".join(filter(None, parts))


def _several(names: Sequence[str], what: str) -> str:
    return ", ".join(names) if len(names) <= MANY else f"{len(names)} {what}"


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
    """The form's widgets and their layout, still empty."""

    def __init__(self, where: Where, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.where = WhereBox(where, adds=True)
        self._make()
        self._lay_out()

    def _make(self) -> None:
        self.models = CheckList("Models")
        self.open_button = push_button("&Open…", tip="Add an .onnx file (Ctrl+O); or drop one on the window")
        self.backends = CheckList("Backends")
        self.precisions = CheckColumn(columns=4)
        # The fields of all options that have a label, by the option's name.
        self.fields: dict[str, Field] = {
            option.name: field(
                option,
                PRESETS.get(option.name, ()),
                self._reading(option) if len(option.fields) > 1 else None,
            )
            for option in options.COMPARE
            if option.label
        }
        # The fields that the form itself uses.
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
        self._rows = form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(TIGHT)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        boxes = [each.widget for each in self.fields.values() if isinstance(each.widget, QCheckBox)]
        rows = [(each.option.label, each.widget) for each in self.fields.values() if each.widget not in boxes]
        for text, widget in (rows[0], ("&Data set", self.dataset), *rows[1:]):
            field = widget.box if isinstance(widget, CheckedText) else widget
            form.addRow(TermLabel(text, buddy=field), widget)
        fields = as_column(
            filled(QHBoxLayout(), (heading("&Models", self.models), 1), self.open_button),
            *(self.models, self.note),
            filled(
                QHBoxLayout(),
                (heading("&Backends", self.backends), 1),
                Label("Where", role="muted"),
                self.where,
            ),
            self.backends,
            *(heading("Precision"), self.precisions, heading("Batch sizes, data and measuring"), form),
            *boxes,
            self.rungs,
            1,
            margins=(WIDE, GAP, WIDE, GAP),
            spacing=TIGHT,
        )
        self._scroll = scroll = scrolled(fields, sideways=False)
        self._give_width()
        buttons = filled(QHBoxLayout(), (self.run_button, 1), self.copy_button, spacing=GAP)
        foot = filled(QVBoxLayout(), self._summary, buttons, margins=(WIDE, GAP, WIDE, GAP))
        filled(QVBoxLayout(self), (scroll, 1), foot, margins=(0, 0, 0, 0), spacing=0)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and hasattr(self, "_scroll"):
            QTimer.singleShot(0, self, self._give_width)  # its fields get the letters after it

    def _give_width(self) -> None:
        """Never narrower than its fields: there is no scrolling sideways."""
        fields, bar = self._scroll.widget(), self._scroll.verticalScrollBar().sizeHint().width()
        assert fields is not None
        self._scroll.setMinimumWidth(fields.minimumSizeHint().width() + bar)

    def _reading(self, option: Option) -> Callable[[str], Any]:
        """A parser for lines with sizes that also checks the names of models against the list. It raises
        InputError."""

        def read(line: str) -> Sizes:
            sizes: Sizes = option.value.read_line(line)
            called = sorted({*self.models.keys, *map(stem, self.models.keys)})
            for model in sizes[1]:
                if model not in called:
                    hint = did_you_mean(model, called, otherwise="; name one of the list above")
                    raise InputError(f"model {model!r} is not known{hint}")
            return sizes

        return read


def of_models(models: Sequence[str], own: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The entries of `own` that are about one of these models, by path or by stem."""
    called = {*models, *map(stem, models)}
    return {model: values for model, values in own.items() if model in called}


MOST_RECENT = 8
MODEL_ROWS = 11


class JobForm(JobFields):
    """The form. `run_wanted` carries a Job. `show_backends` tells it what can run where runs are measured."""

    run_wanted = Signal(object)
    open_wanted = Signal()
    changed = Signal()

    def __init__(self, settings: QSettings, where: Where, parent: QWidget | None = None) -> None:
        super().__init__(where, parent)
        self._settings = settings
        self._where = where
        self._infos: tuple[BackendInfo, ...] = ()
        self._variants: tuple[BackendInfo, ...] = ()
        self._guests: tuple[BackendInfo, ...] = ()
        default = defaults.job()
        self._last_job = default  # its last job, for all that the form has no field for
        self._axes = KeptAxes(settings)
        self._busy = False
        self._refused = ""
        self._left_out: set[str] = set()  # backends the user does not want
        self._rivals: set[str] = set()  # rivals that the user wants; rivals take part only if they are chosen
        self._fill_models()
        for name in palette.BACKENDS:
            self.backends.put(name, name, checked=True, refused=self._asking)
        self.backends.fit(6)
        self.precisions.put("fp32", checked=True)
        self.set_job(self._stored() or default)
        self._connect()
        self._update()

    # ------------------------------------------------------------------------------------- for the window

    def job(self) -> Job:
        """The job that the form describes. Raises InputError, with one sentence, if it describes none."""
        models = with_distinct_stems(self.models.checked)
        if self._where.refused:
            raise InputError(self._where.refused)
        if not models:
            raise InputError("Choose a model, or drop an .onnx file on the window.")
        usable = self.backends.usable
        chosen = self.backends.checked
        if self._infos and not usable:
            raise InputError(f"No backend can run {self._where.there}; each one's tooltip says why.")
        if self._infos and not chosen:
            raise InputError("Choose a backend.")
        if not self.precisions.checked:
            raise InputError("Choose a precision.")
        fields = values(self.fields.values())
        fields["tune_reference"] &= self.tune.isEnabled()
        if not self._mixes:
            fields["max_error"] = None
        tuned = {info.variant_of for info in self._variants}
        if fields["tune_reference"] and self._infos and not tuned & set(chosen):
            raise InputError(f"Choose {self._variants[0].variant_of} too: it is what is tuned.")
        # The texts may name models that are not compared now; so may the chosen kernels.
        fields["own_images"] = of_models(models, fields["own_images"])
        fields["own_batches"] = self._fixed(models, of_models(models, fields["own_batches"]))
        # () means all backends, also later installed ones, like the command without --backend.
        wanted = () if chosen == self._usual else chosen
        return msgspec.structs.replace(
            self._last_job,
            models=models,
            # Until the worker says what the machine can run, the backends of the last job.
            backends=wanted if self._infos else self._last_job.backends,
            precisions=self.precisions.checked,
            dataset=self._dataset_spec(),
            layers_of=self._last_job.layers_of if fields["layers"] else (),
            top_k=self._last_job.top_k if fields["end_to_end"] else 0,
            rungs=chosen_rungs.compared(self.rungs.rungs, models, self.models.keys),
            swaps=chosen_rungs.compared(self.rungs.swaps, models, self.models.keys),
            kernel_dirs=self.rungs.folders,
            **fields,
        )

    @property
    def _mixes(self) -> bool:
        """Whether a mixed precision is chosen, which has a budget."""
        return MIXED in self.precisions.checked

    def set_job(self, job: Job) -> None:
        """Show a job's values."""
        self._last_job = job
        models = tuple(map(plain_path, job.models))
        for model in models:
            if model not in self.models.keys:
                self.add_model(model, check=False)
        self.models.check(models)
        self._rivals = set(job.backends)
        backends = job.backends or [name for name in self.backends.keys if name not in self._asked_only]
        self._left_out = set(self.backends.keys) - set(job.backends) if job.backends else set()
        self.backends.check(backends)
        for precision in job.precisions:
            self.precisions.put(precision)
        self.precisions.check(job.precisions)
        self._set_dataset(job.dataset)
        fill(self.fields.values(), job)
        self.rungs.set_chosen(job.rungs, job.kernel_dirs, self.models.keys, job.swaps)
        self._update()

    def swap_into(self, device: str) -> tuple[list[str], str]:
        """Choose the libraries that take a kernel of this device in the place of a node. Their names, and why
        one of them takes none ("": all do)."""
        guests = [info for info in self._guests if info.device == device]
        names = [f"ort-{device}", *(info.variant_of for info in guests)]
        names = [name for name in names if name in self.backends.usable]
        self.backends.check([*self.backends.checked, *names])
        return names, next((info.unavailable for info in guests if info.unavailable), "")

    def add_model(self, path: str, check: bool = True) -> None:
        """Add an .onnx file to the models, and to the recent files."""
        stem = Path(path).stem
        known = path in self.models.keys
        checked = check or (known and path in self.models.checked)
        self.models.put(path, stem, checked=checked, tip=path)
        self.models.fit(MODEL_ROWS)
        if check:
            self.models.reveal(path)
        recent = [path, *(p for p in self.recent if p != path)]
        self._settings.setValue("recent", recent[:MOST_RECENT])
        self._update()

    def remove_model(self, path: str) -> None:
        """Remove an .onnx file from the models and from the recent files."""
        self.models.remove(path)
        self.models.fit(MODEL_ROWS)
        self._settings.setValue("recent", [other for other in self.recent if other != path])
        self._update()

    def job_of(self, model: str) -> Job:
        """The job of this model alone. If the form describes no job, the last one that it described."""
        try:
            job = self.job()
        except InputError:
            job = self._last_job
        return msgspec.structs.replace(job, models=(model,))

    def show_backends(self, infos: Sequence[BackendInfo]) -> None:
        """Show what the machine can run, as a worker's Hello says it; () if it is not known yet."""
        self._show_variants([info for info in infos if info.variant_of and not info.swaps])
        self._guests = tuple(info for info in infos if info.invited)
        if not infos:
            for name in self.backends.keys:
                self.backends.put(name, name, checked=name not in self._left_out, refused=self._asking)
        # Rivals that are not installed are left out; `doctor` lists them.
        infos = self._infos = tuple(
            info for info in infos if not info.variant_of and not (info.rival and info.unavailable)
        )
        for info in infos:
            wanted = info.name in self._rivals if info.rival else info.name not in self._left_out
            self.backends.put(
                info.name,
                info.name,
                checked=wanted and not info.unavailable,
                tip=f"{info.name}, compared with {info.reference}",
                refused=info.unavailable,
            )
        known = {info.name for info in infos}
        for name in [name for name in self.backends.keys if infos and name not in known]:
            self.backends.put(name, name, refused=f"It is not installed {self._where.there}.")  # as elsewhere
        self.backends.fit(6)
        able: dict[str, list[str]] = {}
        for info in infos:
            for precision in info.precisions:
                able.setdefault(precision, [])
                if not info.unavailable:
                    able[precision].append(info.name)
        for precision in self.precisions.keys if infos else ():
            able.setdefault(precision, [])
        for precision, names_able in able.items():
            refused = "" if names_able else f"No backend that can run {self._where.there} offers it."
            self.precisions.put(precision, refused=refused, tip=", ".join(names_able))
        self._update()

    def show_takes(self, takes: Takes) -> None:
        """Show what a model's file takes and gives."""
        if self.note.tell(takes):
            self._update()

    def set_busy(self, busy: bool) -> None:
        """Say whether a run is active; then no other can be started."""
        if busy != self._busy:  # this is called with every message of a worker
            self._busy = busy
            self._update()

    def request_run(self) -> None:
        """As the Run button: ask for the run, or show what is wrong."""
        self._update()
        if self.run_button.isEnabled():
            job = self.job()
            self.save()
            self.run_wanted.emit(job)

    def take_settings(self) -> None:
        """Show the time and the backends of the default comparison, because the settings have changed.
        Raises InputError as `bench.run.settings` does."""
        usual = defaults.job()
        try:
            job = self.job()
        except InputError:
            job = self._last_job
        self.set_job(msgspec.structs.replace(job, budget_s=usual.budget_s, backends=usual.backends))

    @property
    def recent(self) -> list[str]:
        """The model files used last, the latest first."""
        return kept_list(self._settings, "recent")

    def save(self) -> None:
        """Store the choices for the next start, if they make a job."""
        try:
            job = self.job()
        except InputError:
            return
        self._settings.setValue("job", msgspec.json.encode(job).decode())
        self._axes.keep(job)

    def copy_command(self) -> None:
        arguments = [*COMPARISON.arguments(self.job()), *elsewhere.arguments(self._where.name)]
        QApplication.clipboard().setText(command_line(arguments))

    @property
    def summary(self) -> str:
        return self._summary.text()

    @property
    def refused(self) -> str:
        """Why what is chosen makes no comparison, in a sentence; "" if it makes one."""
        return self._refused

    # ------------------------------------------------------------------------------------------ the inside

    def _fill_models(self) -> None:
        for name, title in names.model_titles().items():
            self.models.put(name, name, tip=title)
        for path in reversed(self.recent):
            if Path(path).is_file():
                self.models.put(path, Path(path).stem, tip=path)
        self.models.fit(MODEL_ROWS)

    def _on_models(self) -> None:
        """Show the sizes of open axes that the chosen model was compared with last."""
        self.axes.text = self._axes.of(self.models.checked, self.axes.text)

    def _connect(self) -> None:
        self.models.chosen.connect(self._on_models)
        for signal in (
            self.models.chosen,
            self.precisions.chosen,
            self.dataset.currentIndexChanged,
            *(each.changed for each in self.fields.values()),
            self.rungs.chosen,
        ):
            signal.connect(self._update)
        self.backends.chosen.connect(self._on_backends)
        self.dataset.activated.connect(self._on_dataset)
        self.labels.box.activated.connect(self._on_labels)
        self.open_button.clicked.connect(self.open_wanted)
        self.run_button.clicked.connect(self.request_run)
        self.copy_button.clicked.connect(self.copy_command)

    def _update(self, *_: object) -> None:
        self._rows.setRowVisible(self.fields["max-error"].widget, self._mixes)
        try:
            job = self.job()
        except InputError as error:
            self._refused = str(error)
        else:
            self._refused = ""
            self.note.look(job)
        self._summary.setText(self._refused or self._estimate(job))
        set_role(self._summary, "failed" if self._refused else "muted")
        self.run_button.setEnabled(not (self._refused or self._busy))
        self.copy_button.setEnabled(not self._refused)
        self.changed.emit()

    def _fixed(self, models: Sequence[str], own: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """The batch sizes for each model. A file that fixes its batch size gets that one. Raises
        InputError if another was asked for."""
        for model, size in self.note.fixed(models).items():
            sizes = own.pop(model, None) or own.pop(stem(model), None) or (size,)
            if sizes != (size,):
                raise InputError(f"{stem(model)} runs at batch {size} alone: its file fixes it.")
            own[stem(model)] = (size,)
        return own

    @property
    def _asking(self) -> str:
        return f"Asking {self._where.words} what it can run …"

    @property
    def _asked_only(self) -> set[str]:
        return {info.name for info in self._infos if info.rival}

    @property
    def _usual(self) -> tuple[str, ...]:
        """The backends that take part if none is named."""
        return tuple(name for name in self.backends.usable if name not in self._asked_only)

    def _estimate(self, job: Job) -> str:
        compared = job.backends or (self._usual if self._infos else ())
        backends = len(compared)
        if job.tune_reference:
            backends += sum(info.variant_of in compared for info in self._variants)
        if not backends:
            return self._asking
        cases = bounds.count(job, backends)
        words = "1 case" if cases == 1 else f"{cases:,} cases"
        least, most = bounds.estimate_s(cases, job)
        return f"{words}, {clock(least)} to {clock(most)} (min:s)"

    def _show_variants(self, infos: Sequence[BackendInfo]) -> None:
        """Enable the tuned reference if this machine has one; else say why not."""
        self._variants = tuple(info for info in infos if not info.unavailable)
        refused = next((info.unavailable for info in infos), "there is nothing to tune")
        self.tune.setEnabled(bool(self._variants))
        tip = by_name(options.COMPARE, "tune-reference").help
        self.tune.setToolTip(tip if self._variants else f"{tip} Not here: {refused}")

    def _on_backends(self) -> None:
        chosen = set(self.backends.checked)
        self._left_out = {name for name in self.backends.usable if name not in chosen}
        self._rivals = chosen & self._asked_only
        self._update()

    def _on_dataset(self, index: int) -> None:
        if self.dataset.itemData(index) == FOLDER:
            folder = QFileDialog.getExistingDirectory(self, "A folder of images, one sub-folder per class")
            self._set_dataset(f"{FOLDER}{folder}" if folder else None)

    def _on_labels(self, index: int) -> None:
        if self.labels.box.itemText(index) == LABELS_FILE:
            file, _ = QFileDialog.getOpenFileName(self, "The model's classes, a line each, in its order")
            self.labels.text = file

    def _dataset_spec(self) -> str | None:
        spec = self.dataset.currentData()
        if spec == FOLDER:
            raise InputError("Choose the folder of images.")
        return spec

    def _set_dataset(self, spec: str | None) -> None:
        index = self.dataset.findData(spec)
        if index < 0:
            assert spec is not None
            self.dataset.addItem(Path(spec.removeprefix(FOLDER)).name or spec, spec)
            index = self.dataset.count() - 1
            self.dataset.setItemData(index, spec, Qt.ItemDataRole.ToolTipRole)
        self.dataset.setCurrentIndex(index)

    def _stored(self) -> Job | None:
        text = self._settings.value("job")
        try:
            return msgspec.json.decode(text, type=Job) if isinstance(text, str) else None
        except msgspec.DecodeError:
            return None  # stored by another version: use the default
