"""An option as a field of a form: a widget of its type, with its help as the tooltip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QSpinBox

from bench.words.option import Number, Numbers, Option, Switch, Text
from gui.base.scale import TIGHT
from gui.form.form_fields import CheckedText
from gui.widgets.combo import Combo


@dataclass(frozen=True)
class Field:
    """widget: what the user fills in; changed: its signal; get: its value, raises InputError where that means
    nothing; put: shows another value."""

    option: Option
    widget: Any
    changed: Any
    get: Callable[[], Any]
    put: Callable[[Any], None]


def field(
    option: Option,
    presets: Mapping[str, str] | Sequence[str] = (),
    read: Callable[[str], Any] | None = None,
) -> Field:
    """The field of an option. presets, of text: what may be picked from; read: in place of the option's own
    reading of a line."""
    value = option.value
    if isinstance(value, Switch):
        made = _switch(option, value)
    elif value.known:
        made = _choice(option, value)
    elif isinstance(value, Number) and not isinstance(value, Numbers):
        made = _number(option, value)
    else:
        made = _text(option, presets, read or value.read_line)
    made.widget.setAccessibleName(option.label.replace("&", ""))
    made.widget.setAccessibleDescription(option.help)
    getattr(made.widget, "box", made.widget).setToolTip(option.help)
    return made


def values(fields: Iterable[Field]) -> dict[str, Any]:
    """What is filled in, as fields of a job. Raises InputError."""
    return {name: value for made in fields for name, value in made.option.as_fields(made.get()).items()}


def fill(fields: Iterable[Field], job: Any) -> None:
    """Fill in what a job has. Nothing is told of it."""
    for made in fields:
        with QSignalBlocker(made.widget):
            made.put(made.option.of(job))


def _switch(option: Option, value: Switch) -> Field:
    box = QCheckBox(option.label)

    def get() -> Any:
        return value.on if box.isChecked() else value.off

    return Field(option, box, box.toggled, get, lambda shown: box.setChecked(shown == value.on))


def _choice(option: Option, value: Text) -> Field:
    box = Combo()
    assert isinstance(value.known, Mapping)
    for word, means in value.known.items():
        box.addItem(f"{word}: {means}", word)
    return Field(
        option, box, box.currentIndexChanged, box.currentData, lambda v: box.setCurrentIndex(box.findData(v))
    )


def _number(option: Option, value: Number) -> Field:
    none: Any = (
        value.least - 1 if value.words else value.least
    )  # what stands for none, where there may be none
    box: QSpinBox | QDoubleSpinBox
    if value.kind is int:
        box = QSpinBox(minimum=int(none), maximum=value.most)
    else:
        box = QDoubleSpinBox(minimum=0.05, maximum=600.0, decimals=2, singleStep=0.25)
    box.setSpecialValueText(value.words)
    box.setSuffix(f" {option.hint}" if option.hint else "")
    box.lineEdit().setTextMargins(TIGHT, 0, 0, 0)

    def get() -> Any:
        return value.nothing if value.words and box.value() == none else box.value()

    def put(shown: Any) -> None:
        box.setValue(none if shown == value.nothing else shown)

    return Field(option, box, box.valueChanged, get, put)


def _text(option: Option, presets: Mapping[str, str] | Sequence[str], read: Callable[[str], Any]) -> Field:
    box = CheckedText(option.label.replace("&", ""), read, presets, option.hint)

    def put(value: Any) -> None:
        box.text = option.value.line(value)

    return Field(option, box, box.edited, lambda: box.value, put)
