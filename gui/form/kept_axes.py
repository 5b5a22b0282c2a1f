"""The sizes of open axes that models were compared with, kept from one start to the next."""

from __future__ import annotations

import json
from collections.abc import Sequence

from PySide6.QtCore import QSettings

from bench.results.names import plain_path
from bench.results.records import Job
from bench.run import options
from bench.words.option import by_name
from models import names

KEY = "axes"
MOST = 64  # models


class KeptAxes:
    """By a file's path, in the text of the form's field."""

    def __init__(self, settings: QSettings) -> None:
        self._settings = settings
        self._shown = ""  # what was filled in for the model that is chosen

    def keep(self, job: Job) -> None:
        """What a job says of each of its files."""
        held = self._held()
        for model in map(plain_path, job.models):
            if model not in names.models():
                held.pop(model, None)
                if text := by_name(options.COMPARE, "dim").value.line(job.dims_of(model)):
                    held[model] = text
        self._settings.setValue(KEY, json.dumps(dict([*held.items()][-MOST:])))

    def of(self, models: Sequence[str], text: str) -> str:
        """What the field shows once these models are chosen. text: what it shows now, which stays where the
        user has typed it, and where several files are chosen; models of the catalogue have no open axes."""
        files = [model for model in models if model not in names.models()]
        if len(files) > 1 or text not in ("", self._shown):
            return text
        self._shown = self._held().get(files[0], "") if files else ""
        return self._shown

    def _held(self) -> dict[str, str]:
        try:
            held = json.loads(str(self._settings.value(KEY, "{}")))
        except ValueError:
            return {}
        return held if isinstance(held, dict) else {}
