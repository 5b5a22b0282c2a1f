"""What the chosen model's file takes and gives, and what will be done to an image: below the list of
models."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal

from bench.questions.asked import Takes
from bench.results.records import Job, stem
from gui.widgets.labels import Label
from models import names


class ModelNote(Label):
    """Hidden while no file is chosen. `asked` carries the job whose first model is to be looked at."""

    asked = Signal(object)

    def __init__(self) -> None:
        super().__init__(role="muted", wrap=True)
        self.setAccessibleName("What the model takes")
        self.hide()
        self._known: dict[str, Takes] = {}
        self._asked: Job | None = None

    def fixed(self, models: Sequence[str]) -> dict[str, int]:
        """The batch size of each of these files that runs at one alone."""
        return {
            model: size
            for model in models
            if model in self._known and (size := self._known[model].fixed_batch) is not None
        }

    def look(self, job: Job) -> None:
        """The job is as the form has it: ask of the file that was chosen last, where what matters has
        changed."""
        files = [model for model in job.models if model not in names.models()]
        if not files:
            self._asked = None
            self.hide()
            return
        wanted = Job(
            models=(files[-1],),
            backends=(),
            dataset=job.dataset,
            preprocess=job.preprocess,
            labels=job.labels,
            scores=job.scores,
            inputs=job.inputs,
            dims=job.dims,
        )
        if wanted != self._asked:
            self._asked = wanted
            self.setText(f"Looking at {stem(files[-1])} …")
            self.show()
            self.asked.emit(wanted)

    def tell(self, takes: Takes) -> bool:
        """Show what was found. Whether a batch size that is fixed is news."""
        news = self.fixed([takes.model]) != ({takes.model: takes.fixed_batch} if takes.fixed_batch else {})
        self._known[takes.model] = takes
        if self._asked is None or self._asked.models != (takes.model,):
            return news
        told = [f"{name}: {words}" for name, words in takes.lines]
        self.setText("\n".join([stem(takes.model), *told, *filter(None, [takes.refused])]))
        self.show()
        return news
