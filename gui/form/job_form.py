"""What to compare: the form makes a Job, says what is wrong with it while it is typed, and how long it
takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QSettings, Qt, Signal
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget

from bench.questions.asked import Takes
from bench.results.names import plain_path, with_distinct_stems
from bench.results.records import BackendInfo, Job, stem
from bench.run import bounds, chosen_rungs, defaults, options
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.words import palette
from bench.words.option import by_name
from bench.words.units import clock
from gui.form.job_fields import FOLDER, LABELS_FILE, JobFields, of_models
from gui.form.kept_axes import KeptAxes
from gui.form.option_fields import fill, values
from gui.widgets.controls import set_role
from kernels.errors import InputError
from models import names

MOST_RECENT = 8
MODEL_ROWS = 11


class JobForm(JobFields):
    """`run_wanted` carries a Job. `show_backends` tells the form what the machine can run."""

    run_wanted = Signal(object)
    open_wanted = Signal()
    changed = Signal()

    def __init__(self, settings: QSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._infos: tuple[BackendInfo, ...] = ()
        self._variants: tuple[BackendInfo, ...] = ()
        default = defaults.job()
        self._kept = default  # what the form has no field for
        self._axes = KeptAxes(settings)
        self._busy = False
        self._left_out: set[str] = set()  # backends the user does not want
        self._rivals: set[str] = set()  # those that take part only where they are wanted, and are
        self._fill_models()
        for name in palette.BACKENDS:
            self.backends.put(name, name, checked=True, refused="Asking this machine what it can run …")
        self.backends.fit(6)
        self.precisions.put("fp32", checked=True)
        self.set_job(self._stored() or default)
        self._connect()
        self._update()

    # ------------------------------------------------------------------------------------- for the window

    def job(self) -> Job:
        """The job the form describes. Raises InputError, one sentence, where it describes none."""
        models = with_distinct_stems(self.models.checked)
        if not models:
            raise InputError("Choose a model, or drop an .onnx file on the window.")
        usable = self.backends.usable
        chosen = self.backends.checked
        if self._infos and not usable:
            raise InputError("No backend can run here; each one's tooltip says why.")
        if self._infos and not chosen:
            raise InputError("Choose a backend.")
        if not self.precisions.checked:
            raise InputError("Choose a precision.")
        fields = values(self.fields.values())
        fields["tune_reference"] &= self.tune.isEnabled()
        tuned = {info.variant_of for info in self._variants}
        if fields["tune_reference"] and self._infos and not tuned & set(chosen):
            raise InputError(f"Choose {self._variants[0].variant_of} too: it is what is tuned.")
        # A model that is not compared may keep its place in the text, and so may a kernel for it.
        fields["own_images"] = of_models(models, fields["own_images"])
        fields["own_batches"] = self._fixed(models, of_models(models, fields["own_batches"]))
        # All that can run: as the command without --backend, which also takes what is installed later.
        wanted = () if chosen == self._usual else chosen
        return msgspec.structs.replace(
            self._kept,
            models=models,
            # Until the machine has told what it can run, what was wanted the last time.
            backends=wanted if self._infos else self._kept.backends,
            precisions=self.precisions.checked,
            dataset=self._dataset_spec(),
            layers_of=self._kept.layers_of if fields["layers"] else (),
            top_k=self._kept.top_k if fields["end_to_end"] else 0,
            rungs=chosen_rungs.compared(self.rungs.rungs, models, self.models.keys),
            kernel_dirs=self.rungs.folders,
            **fields,
        )

    def set_job(self, job: Job) -> None:
        """Fill the form in."""
        self._kept = job
        models = tuple(map(plain_path, job.models))
        for model in models:
            if model not in self.models.keys:
                self.add_model(model, check=False)
        self.models.check(models)
        self._rivals = set(job.backends)
        shown = job.backends or [name for name in self.backends.keys if name not in self._asked_only]
        self._left_out = set(self.backends.keys) - set(job.backends) if job.backends else set()
        self.backends.check(shown)
        for precision in job.precisions:
            self.precisions.put(precision)
        self.precisions.check(job.precisions)
        self._set_dataset(job.dataset)
        fill(self.fields.values(), job)
        self.rungs.set_chosen(job.rungs, job.kernel_dirs, self.models.keys)
        self._update()

    def add_model(self, path: str, check: bool = True) -> None:
        """Put an .onnx file among the models, and keep it as a recent one."""
        stem = Path(path).stem
        known = path in self.models.keys
        checked = check or (known and path in self.models.checked)
        self.models.put(path, stem, checked=checked, tip=path)
        self.models.fit(MODEL_ROWS)
        recent = [path, *(p for p in self._recent() if p != path)]
        self._settings.setValue("recent", recent[:MOST_RECENT])
        self._update()

    def remove_model(self, path: str) -> None:
        """Take an .onnx file from the models and from the recent ones."""
        self.models.remove(path)
        self.models.fit(MODEL_ROWS)
        self._settings.setValue("recent", [kept for kept in self._recent() if kept != path])
        self._update()

    def job_of(self, model: str) -> Job:
        """As which this model would be compared; where the form describes no job, as it was the last time."""
        try:
            job = self.job()
        except InputError:
            job = self._kept
        return msgspec.structs.replace(job, models=(model,))

    def show_backends(self, infos: Sequence[BackendInfo]) -> None:
        """What the machine can run, from a worker's Hello."""
        self._show_variants([info for info in infos if info.variant_of])
        # A rival that is not there is `doctor`'s to tell: the form would be longer than what it offers.
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
        self.backends.fit(6)
        able: dict[str, list[str]] = {}
        for info in infos:
            for precision in info.precisions:
                able.setdefault(precision, [])
                if not info.unavailable:
                    able[precision].append(info.name)
        for precision, names_able in able.items():
            refused = "" if names_able else "No backend that can run here offers it."
            self.precisions.put(precision, refused=refused, tip=", ".join(names_able))
        self._update()

    def show_takes(self, takes: Takes) -> None:
        """What a model's file takes and gives, from whoever has looked at it."""
        if self.note.tell(takes):
            self._update()

    def set_busy(self, busy: bool) -> None:
        """While a run is active, nothing can be started."""
        if busy != self._busy:  # told with every message of a worker
            self._busy = busy
            self._update()

    def request_run(self) -> None:
        """As the Run button: tell what is wrong below it, or ask for the run."""
        self._update()
        if self.run_button.isEnabled():
            job = self.job()
            self.save()
            self.run_wanted.emit(job)

    def save(self) -> None:
        """Keep the choices for the next start, where they make a job."""
        try:
            job = self.job()
        except InputError:
            return
        self._settings.setValue("job", msgspec.json.encode(job).decode())
        self._axes.keep(job)

    def copy_command(self) -> None:
        QApplication.clipboard().setText(COMPARISON.command_line(self.job()))

    @property
    def summary(self) -> str:
        return self._summary.text()

    # ------------------------------------------------------------------------------------------ the inside

    def _fill_models(self) -> None:
        for name, title in names.model_titles().items():
            self.models.put(name, name, tip=title)
        for path in reversed(self._recent()):
            if Path(path).is_file():
                self.models.put(path, Path(path).stem, tip=path)
        self.models.fit(MODEL_ROWS)

    def _on_models(self) -> None:
        """The sizes of open axes are those that the model was compared with the last time."""
        self.axes.text = self._axes.of(self.models.checked, self.axes.text)

    def _connect(self) -> None:
        self.models.chosen.connect(self._on_models)
        for signal in (
            self.models.chosen,
            self.precisions.chosen,
            self.dataset.currentIndexChanged,
            *(made.changed for made in self.fields.values()),
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
        try:
            job = self.job()
        except InputError as error:
            self._summary.setText(str(error))
            ready = False
        else:
            ready = True
            self.note.look(job)
            self._summary.setText(self._estimate(job))
        set_role(self._summary, "muted" if ready else "failed")
        self.run_button.setEnabled(ready and not self._busy)
        self.copy_button.setEnabled(ready)
        self.changed.emit()

    def _fixed(self, models: Sequence[str], own: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Batch sizes by model; a file that fixes its batch is offered no other. Raises InputError."""
        for model, size in self.note.fixed(models).items():
            asked = own.pop(model, None) or own.pop(stem(model), None) or (size,)
            if asked != (size,):
                raise InputError(f"{stem(model)} runs at batch {size} alone: its file fixes it.")
            own[stem(model)] = (size,)
        return own

    @property
    def _asked_only(self) -> set[str]:
        return {info.name for info in self._infos if info.rival}

    @property
    def _usual(self) -> tuple[str, ...]:
        """What takes part where nothing is named."""
        return tuple(name for name in self.backends.usable if name not in self._asked_only)

    def _estimate(self, job: Job) -> str:
        compared = job.backends or (self._usual if self._infos else ())
        backends = len(compared)
        if job.tune_reference:
            backends += sum(info.variant_of in compared for info in self._variants)
        if not backends:
            return "Asking this machine what it can run …"
        cases = bounds.count(job, backends)
        words = "1 case" if cases == 1 else f"{cases:,} cases"
        least, most = bounds.estimate_s(cases, job)
        return f"{words}, {clock(least)} to {clock(most)} (min:s)"

    def _show_variants(self, infos: Sequence[BackendInfo]) -> None:
        """Whether there is a reference that can be tuned; where there is not, why."""
        self._variants = tuple(info for info in infos if not info.unavailable)
        refused = next((info.unavailable for info in infos), "there is nothing to tune")
        self.tune.setEnabled(bool(self._variants))
        told = by_name(options.COMPARE, "tune-reference").help
        self.tune.setToolTip(told if self._variants else f"{told} Not here: {refused}")

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

    def _recent(self) -> list[str]:
        found: Any = self._settings.value("recent", [])
        # An INI file keeps a list of one as its only entry.
        return [found] if isinstance(found, str) else [str(path) for path in found or []]

    def _stored(self) -> Job | None:
        text = self._settings.value("job")
        try:
            return msgspec.json.decode(text, type=Job) if isinstance(text, str) else None
        except msgspec.DecodeError:
            return None  # of another version: the default is better than a stop
