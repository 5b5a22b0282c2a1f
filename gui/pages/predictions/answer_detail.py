"""One image, large, with its label and what every contender took it for."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QHBoxLayout, QWidget

from bench.charts.verdicts import CROWDED
from bench.words import palette, units
from gui.base.boxes import filled
from gui.base.theme import Theme
from gui.pages.predictions.answer_grid import picture
from gui.pages.predictions.answers import Answered
from gui.widgets.labels import Label

SIDE = 160  # of the image, in logical pixels


class AnswerDetail(QWidget):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.picture = Label()
        self.picture.setFixedSize(SIDE, SIDE)
        self.picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.facts = Label()
        self.facts.setTextFormat(Qt.TextFormat.RichText)
        self.facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.facts.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.facts.setWordWrap(True)
        filled(
            QHBoxLayout(self),
            (self.picture, 0, Qt.AlignmentFlag.AlignTop),
            (self.facts, 1),
            margins=(0, 0, 0, 0),
        )

    def show_image(self, answered: Answered, index: int, theme: Theme) -> None:
        """Show the image of this index in the data set; hide where there is none such."""
        known = 0 <= index < len(answered)
        self.setVisible(known)
        if not known:
            return
        image = picture(answered, index)
        self.picture.setVisible(image is not None)
        if image is not None:
            ratio = self.devicePixelRatioF()
            side = round(SIDE * ratio)
            shown = QPixmap.fromImage(image).scaled(side, side, Qt.AspectRatioMode.KeepAspectRatio)
            shown.setDevicePixelRatio(ratio)
            self.picture.setPixmap(shown)
        self.facts.setText(facts(answered, index, theme))


def facts(answered: Answered, index: int, theme: Theme) -> str:
    """What is known of an image, as HTML: two lines a contender, of many one, or they would leave the
    confusion matrix no room."""
    between = "<br>" if len(answered.names) <= CROWDED else "&nbsp; "
    label = int(answered.labels[index])
    told = escape(answered.class_name(label)) if label >= 0 else "unknown"
    lines = [f"<b>Image {index:,}</b>", f"label: <b>{told}</b>"]
    for name, answers in zip(answered.names, answered.answers, strict=True):
        predicted = int(answers.predicted[index])
        wrong = label >= 0 and label != predicted
        mark = "" if label < 0 else "✕ " if wrong else "✓ "
        best = ", label in its top 5" if wrong and answers.top5[index] else ""
        sure = units.percent(float(answers.confidence[index]), 2)
        swatch = palette.backend(name.partition(" ")[0])
        colour = theme.failed if wrong else theme.ink
        answer = f"{mark}{escape(answered.class_name(predicted))}"
        who = f'<span style="color:{swatch}">■</span> {escape(name)}'
        lines.append(f'{who}{between}<span style="color:{colour}">{answer}</span>, {sure}{best}')
    return "<br>".join(lines)
