"""The look of the window: light, dark and high-contrast palettes, distances, type sizes, letters, icons.

The theme follows the system unless the user chooses one. Qt draws in its Fusion style with our palettes.
Backends and breakdown categories have their colours from bench.words.palette in both themes; the paper that
they are drawn on is defined here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QGuiApplication,
    QIcon,
    QPainter,
    QPalette,
)
from PySide6.QtWidgets import QAbstractButton, QApplication

GRID = 4  # pixels: every distance is a multiple of it
CELL = 3  # on both sides of what stands in a table, beside what Qt leaves
TIGHT, GAP, WIDE, BROAD = GRID, 2 * GRID, 3 * GRID, 6 * GRID
PAGE_MARGINS = (GAP, TIGHT, GAP, GAP)  # around what a page holds
ROUND = 6  # of a surface's corners
CONTROL = 5  # of a button's or a field's

# Sizes of text by role, as multiples of the application's font size.
SIZES = {
    "axis": 0.889,
    "caption": 0.9,
    "body": 1.0,
    "heading": 1.1,
    "finding": 1.15,
    "empty": 1.2,
    "verdict": 1.5,
}


_scale = 1.0  # of text in use: Theming.enlarge sets it, as it sets the application's font


def scaled(pixels: float) -> int:
    """What text of the usual size takes so many pixels of, at the size in use."""
    return round(_scale * pixels)


def points(role: str) -> float:
    """The size in points of text in this role (a key of SIZES)."""
    size = QApplication.font().pointSizeF()
    return round((size if size > 0 else 9.0) * SIZES[role], 2)


LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


def resized(
    font: QFont, times: float = 1.0, more: float = 0.0, bold: bool = False, least: float = 1.0
) -> QFont:
    """A copy of a font with `times` the size plus `more` points, at least `least` points. bold: True makes
    it bold, False leaves its weight."""
    other = QFont(font)
    if (times, more) != (1.0, 0.0):
        other.setPointSizeF(max(least, times * font.pointSizeF() + more))
    if bold:
        other.setBold(True)
    return other


def write(
    painter: QPainter,
    place: QRectF,
    text: str,
    ink: QColor | str,
    where: Qt.AlignmentFlag = LEFT,
    cut: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
) -> None:
    """Paint one line of text in the painter's font. If it does not fit, it is shortened with "…"."""
    painter.setPen(QColor(ink))
    painter.drawText(place, where, QFontMetricsF(painter.font()).elidedText(text, cut, place.width()))


_PICTURES = Path(__file__).with_name("pictures").as_posix()


def surfaces(theme: Theme) -> str:
    """The part of the style sheet for text, controls, lists and frames."""
    return _text(theme) + _controls(theme) + _lists(theme) + _frames(theme)


def _text(theme: Theme) -> str:
    return f"""
    QLabel[role="chart-title"] {{ color: {theme.muted}; font-weight: 600; }}
    QLabel[role="caption"] {{ color: {theme.muted}; font-size: {points("caption")}pt; }}
    QLabel[role="heading"] {{ font-size: {points("heading")}pt; }}
    QLabel[role="finding"] {{ color: {theme.ink}; font-size: {points("finding")}pt; }}
    QLabel[role="verdict"] {{ color: {theme.ink}; font-size: {points("verdict")}pt; font-weight: 600; }}
    QLabel[role="what-fills"] {{ color: {theme.muted}; font-size: {points("empty")}pt; }}
    """


def _controls(theme: Theme) -> str:
    field = f"""background: {theme.paper}; border: 1px solid {theme.line}; border-radius: {CONTROL}px;
        selection-background-color: {theme.accent}; selection-color: {theme.on_accent};"""
    # Where all is bright, what cannot be used is told by its edge as well.
    edge = "dashed" if theme.name == "contrast" else "solid"
    small, arrow, check = (f"width: {n}px; height: {n}px" for n in map(scaled, (10, 12, 13)))
    return f"""
    QPushButton {{ background: {theme.button}; border: 1px solid {theme.line};
        border-radius: {CONTROL}px; padding: {TIGHT}px {WIDE}px; }}
    QPushButton:hover {{ border-color: {theme.muted}; }}
    QPushButton:pressed {{ background: {theme.line}; }}
    QPushButton:focus {{ border-color: {theme.accent}; }}
    QPushButton:disabled {{ background: transparent; color: {theme.off}; border-style: {edge}; }}
    QPushButton[role="doubts"] {{ color: {theme.warning}; padding: 1px {GAP}px; }}
    QPushButton[role="small"] {{ padding: 0 {GAP}px; }}
    QPushButton[role="primary"]:hover {{ border-color: {theme.ink}; }}
    QPushButton[role="link"] {{ background: transparent; border: 1px solid transparent; color: {theme.accent};
        padding: {TIGHT}px {GAP}px; text-align: left; }}
    QPushButton[role="link"]:hover, QPushButton[role="link"]:focus {{ border-color: {theme.line}; }}
    QToolButton {{ background: {theme.button}; border: 1px solid {theme.line};
        border-radius: {CONTROL}px; padding: {GRID - 1}px {GAP}px; }}
    QToolButton:hover {{ border-color: {theme.muted}; }}
    QToolButton:focus {{ border-color: {theme.accent}; }}
    QToolButton:disabled {{ color: {theme.off}; border-style: {edge}; }}
    QToolButton[autoRaise="true"] {{ background: transparent; border: 1px solid transparent;
        padding: {GRID - 1}px; }}
    QToolButton[autoRaise="true"]:hover {{ background: {theme.line}; }}
    QToolButton[popupMode="2"] {{ padding-right: {GAP + scaled(3 * GRID)}px; }}
    QToolButton::menu-indicator {{ image: url({_PICTURES}/down.svg); {small};
        subcontrol-origin: padding; subcontrol-position: center right; right: {GRID}px; }}
    QComboBox {{ {field} padding: {GRID - 1}px {GAP}px; }}
    QComboBox:editable {{ padding-left: {GRID + 2}px; }}
    QAbstractSpinBox QLineEdit {{ border: none; padding: 0 0 0 {TIGHT}px; background: transparent; }}
    QComboBox:hover, QAbstractSpinBox:hover, QLineEdit:hover {{ border-color: {theme.muted}; }}
    QComboBox:focus, QAbstractSpinBox:focus, QLineEdit:focus {{ border-color: {theme.accent}; }}
    QComboBox:disabled, QAbstractSpinBox:disabled, QLineEdit:disabled {{ background: transparent;
        color: {theme.off}; border-style: {edge}; }}
    QComboBox::drop-down {{ border: none; width: {scaled(5 * GRID)}px; }}
    QComboBox::down-arrow {{ image: url({_PICTURES}/down.svg); {arrow}; }}
    QComboBox QLineEdit {{ border: none; padding: 0; background: transparent; }}
    QComboBox QAbstractItemView {{ background: {theme.paper}; border: 1px solid {theme.line};
        outline: none; }}
    QLineEdit {{ {field} padding: {GRID - 1}px {TIGHT}px; }}
    QSpinBox, QDoubleSpinBox {{ {field} padding: {GRID - 1}px {TIGHT}px {GRID - 1}px {GRID + 2}px; }}
    QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ border: none; background: transparent;
        width: {scaled(4 * GRID)}px; }}
    QAbstractSpinBox::up-arrow {{ image: url({_PICTURES}/up.svg); {small}; }}
    QAbstractSpinBox::down-arrow {{ image: url({_PICTURES}/down.svg); {small}; }}
    QCheckBox {{ spacing: {GRID + 2}px; }}
    QCheckBox::indicator, QListView::indicator {{ {check}; background: {theme.paper};
        border: 1px solid {theme.muted}; border-radius: {GRID - 1}px; }}
    QCheckBox::indicator:checked, QListView::indicator:checked {{ background: {theme.accent};
        border-color: {theme.accent}; image: url({_PICTURES}/check-{theme.name}.svg); }}
    QCheckBox::indicator:focus, QCheckBox::indicator:hover {{ border-color: {theme.accent}; }}
    QCheckBox::indicator:disabled, QListView::indicator:disabled {{ border-color: {theme.line};
        background: transparent; }}
    QProgressBar {{ background: {theme.line}; border: none; border-radius: {GRID - 1}px; max-height: 6px; }}
    QProgressBar::chunk {{ background: {theme.accent}; border-radius: {GRID - 1}px; }}
    """


def _lists(theme: Theme) -> str:
    small = f"width: {scaled(10)}px; height: {scaled(10)}px"
    return f"""
    QTableView, QListView, QTreeView {{ background: {theme.paper}; border: none;
        border-radius: {ROUND}px; }}
    TableView::item {{ padding: 0 {CELL}px; }}
    BoardView::item {{ padding: 0; }}
    CheckList::item {{ padding: 2px 0; }}
    QTreeView::item {{ padding: 3px; }}
    QHeaderView {{ background: {theme.paper}; border: none; }}
    QHeaderView::section {{ background: {theme.paper}; color: {theme.muted}; border: none;
        border-bottom: 1px solid {theme.line}; padding: {TIGHT}px {GRID - 1}px; }}
    TableView QHeaderView::section {{ padding: {TIGHT}px {GRID - 1 + CELL}px; }}
    BoardView QHeaderView::section {{ padding: {TIGHT}px {GRID - 1}px; }}
    QHeaderView::section:hover {{ color: {theme.ink}; }}
    QHeaderView::up-arrow {{ image: url({_PICTURES}/up.svg); {small};
        subcontrol-position: center right; }}
    QHeaderView::down-arrow {{ image: url({_PICTURES}/down.svg); {small};
        subcontrol-position: center right; }}
    QAbstractScrollArea::corner {{ background: transparent; border: none; }}
    QScrollBar {{ background: transparent; border: none; margin: 0; }}
    QScrollBar:vertical {{ width: {WIDE}px; }}
    QScrollBar:horizontal {{ height: {WIDE}px; }}
    QScrollBar::handle {{ background: {theme.line}; border-radius: {GRID - 1}px; margin: {GRID - 1}px; }}
    QScrollBar::handle:hover {{ background: {theme.muted}; }}
    QScrollBar::handle:vertical {{ min-height: {BROAD}px; }}
    QScrollBar::handle:horizontal {{ min-width: {BROAD}px; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; border: none; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    """


def _frames(theme: Theme) -> str:
    return f"""
    QTabWidget::pane {{ border: none; }}
    QTabBar {{ background: transparent; qproperty-drawBase: 0; }}
    QTabBar::tab {{ background: transparent; color: {theme.muted}; border: none;
        border-bottom: 2px solid transparent; padding: {GRID + 2}px {WIDE}px; }}
    QTabBar::tab:hover {{ color: {theme.ink}; }}
    QTabBar::tab:selected {{ color: {theme.ink}; border-bottom-color: {theme.accent}; }}
    QTabBar::tab:focus {{ border-bottom-color: {theme.ink}; }}
    QTabBar QToolButton {{ background: {theme.window}; border: none; padding: 0px; }}
    QMenuBar {{ background: {theme.window}; border: none; }}
    QToolBar {{ background: {theme.window}; border: none; padding: 2px {GAP}px; spacing: {GAP}px; }}
    QToolBar QToolButton {{ min-height: {4 * GRID + 2}px; }}
    QStatusBar {{ background: {theme.window}; border-top: 1px solid {theme.line}; }}
    QDockWidget {{ color: {theme.muted}; titlebar-close-icon: url({_PICTURES}/close.svg); }}
    QDockWidget::title {{ background: {theme.window}; padding: {GRID + 2}px {WIDE}px; text-align: left; }}
    QDockWidget::close-button {{ border: none; background: transparent; }}
    QMainWindow::separator {{ background: {theme.window}; width: {GRID}px; height: {GRID}px; }}
    QMainWindow::separator:hover {{ background: {theme.accent}; }}
    QSplitter::handle {{ background: transparent; }}
    QSplitter::handle:hover {{ background: {theme.line}; }}
    """


CHOICES = {
    "system": "Follow the system",
    "light": "Light",
    "dark": "Dark",
    "contrast": "High contrast",
}
LEAST_ZOOM, MOST_ZOOM, ZOOM_STEP = 70, 250, 10  # percent of the system's type size


@dataclass(frozen=True)
class Theme:
    """Colours by role, as "#RRGGBB". paper: behind plots and lists; ink: text; muted: captions and axes; off:
    what cannot be used now; line: borders."""

    name: str
    window: str
    paper: str
    alternate: str
    button: str
    ink: str
    muted: str
    off: str
    line: str
    grid: str
    accent: str
    on_accent: str
    failed: str
    warning: str
    good: str

    @property
    def dark(self) -> bool:
        return self.name != "light"


LIGHT = Theme(
    name="light",
    window="#F3F4F6",
    paper="#FFFFFF",
    alternate="#F7F8FA",
    button="#FBFBFC",
    ink="#1F2328",
    muted="#5F6771",
    off="#5F6771",
    line="#D0D5DB",
    grid="#E3E5E8",
    accent="#0B63A5",
    on_accent="#FFFFFF",
    failed="#B00020",
    warning="#8A5A00",
    good="#0A6B46",
)
DARK = Theme(
    name="dark",
    window="#1E2126",
    paper="#25292F",
    alternate="#2A2F36",
    button="#31363E",
    ink="#E8EAED",
    muted="#A3ABB5",
    off="#A3ABB5",
    line="#434A54",
    grid="#3A4049",
    accent="#53A8E0",
    on_accent="#10151B",
    failed="#FF7B86",
    warning="#E6B450",
    good="#5CCB9B",
)

CONTRAST = Theme(
    name="contrast",
    window="#000000",
    paper="#000000",
    alternate="#141414",
    button="#1C1C1C",
    ink="#FFFFFF",
    muted="#D6D6D6",
    off="#949494",
    line="#A6A6A6",
    grid="#4D4D4D",
    accent="#FFD633",
    on_accent="#000000",
    failed="#FF9A9A",
    warning="#FFC24D",
    good="#7BEBB0",
)
THEMES = {theme.name: theme for theme in (LIGHT, DARK, CONTRAST)}


def fixed_font() -> QFont:
    """The system's font with one width for all letters, as large as other text."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(QApplication.font().pointSizeF())
    return font


class Theming(QObject):
    """The theme in use. `changed` is emitted after each switch; widgets that paint themselves repaint
    then."""

    changed = Signal()

    def __init__(self, choice: str = "system", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.choice = choice if choice in CHOICES else "system"
        self.theme = self._wanted()
        self.zoom = 100  # percent
        self._usual = QApplication.font().pointSizeF()  # the size that is 100 %
        hints = QGuiApplication.styleHints()
        hints.colorSchemeChanged.connect(self._follow)

    def choose(self, choice: str) -> None:
        """Use another key of CHOICES. Raises ValueError for anything else."""
        if choice not in CHOICES:
            raise ValueError(f"theme {choice!r} is not one of {', '.join(CHOICES)}")
        self.choice = choice
        self._follow()

    def enlarge(self, percent: int) -> None:
        """Make all text this large: percent of the system's size, within LEAST_ZOOM and MOST_ZOOM."""
        percent = max(LEAST_ZOOM, min(MOST_ZOOM, percent))
        if percent != self.zoom:
            global _scale
            self.zoom, _scale = percent, percent / 100
            font = QApplication.font()
            font.setPointSizeF(self._usual * percent / 100)
            QApplication.setFont(font)
            self.apply()
            self.changed.emit()

    def apply(self) -> None:
        """Give the application the theme's palette and style sheet."""
        app, wanted = QApplication.instance(), sheet(self.theme)
        # Setting the same sheet again would restyle every widget for nothing.
        if isinstance(app, QApplication) and app.styleSheet() != wanted:
            # The palette first: a style sheet that is set before it keeps the old colours.
            app.setPalette(palette(self.theme))
            app.setStyleSheet(wanted)

    def _follow(self, *_: object) -> None:
        wanted = self._wanted()
        if wanted != self.theme:
            self.theme = wanted
            self.apply()
            self.changed.emit()

    def _wanted(self) -> Theme:
        if self.choice == "system":
            scheme = QGuiApplication.styleHints().colorScheme()
            return DARK if scheme == Qt.ColorScheme.Dark else LIGHT
        return THEMES[self.choice]


def palette(theme: Theme) -> QPalette:
    """The Qt palette of a theme, with its disabled colours."""
    qt_palette = QPalette()
    roles = QPalette.ColorRole
    for role, colour in {
        roles.Window: theme.window,
        roles.WindowText: theme.ink,
        roles.Base: theme.paper,
        roles.AlternateBase: theme.alternate,
        roles.Text: theme.ink,
        roles.Button: theme.button,
        roles.ButtonText: theme.ink,
        roles.BrightText: theme.failed,
        roles.ToolTipBase: theme.paper,
        roles.ToolTipText: theme.ink,
        roles.PlaceholderText: theme.muted,
        roles.Highlight: theme.accent,
        roles.HighlightedText: theme.on_accent,
        roles.Link: theme.accent,
        roles.LinkVisited: theme.accent,
        roles.Light: theme.paper,
        roles.Midlight: theme.alternate,
        roles.Mid: theme.line,
        roles.Dark: theme.line,
        roles.Shadow: "#000000" if theme.dark else "#9AA1AA",
        roles.Accent: theme.accent,
    }.items():
        qt_palette.setColor(role, QColor(colour))
    faint = QColor(theme.off)
    faint.setAlpha(255 if theme.name == "contrast" else 150)
    for role in (roles.WindowText, roles.Text, roles.ButtonText):
        qt_palette.setColor(QPalette.ColorGroup.Disabled, role, faint)
    qt_palette.setColor(QPalette.ColorGroup.Disabled, roles.Highlight, QColor(theme.line))
    return qt_palette


def sheet(theme: Theme) -> str:
    """The style sheet of a theme: all that a palette cannot express, such as borders and the roles of
    labels."""
    high = theme.name == "contrast"
    under = theme.alternate if high else theme.line  # of a button that cannot be pressed
    return (
        surfaces(theme)
        + f"""
    QToolTip {{ color: {theme.ink}; background: {theme.paper}; border: 1px solid {theme.line};
        padding: 3px; }}
    QLabel[role="muted"] {{ color: {theme.muted}; }}
    QLabel[role="heading"] {{ font-weight: 600; }}
    QLabel[role="failed"] {{ color: {theme.failed}; }}
    QLabel[role="warning"] {{ color: {theme.warning}; }}
    QLabel[role="empty"] {{ color: {theme.muted}; padding: 40px; }}
    QFrame[role="card"] {{ background: {theme.paper}; border: none; border-radius: 6px; }}
    QFrame[role="banner"] {{ background: transparent; border: none; }}
    QFrame[role="notice"] {{ background: {theme.button}; border: 1px solid {theme.muted};
        border-left: 4px solid {theme.accent}; border-radius: 6px; }}
    QFrame[role="notice"][severity="warning"] {{ border-left-color: {theme.warning}; }}
    QFrame[role="notice"][severity="failed"] {{ border-left-color: {theme.failed}; }}
    QLabel[role="sign-info"] {{ color: {theme.accent}; font-weight: 700; }}
    QLabel[role="sign-warning"] {{ color: {theme.warning}; font-weight: 700; }}
    QLabel[role="sign-failed"] {{ color: {theme.failed}; font-weight: 700; }}
    QPushButton[role="primary"], QToolButton[role="primary"] {{ background: {theme.accent};
        color: {theme.on_accent}; font-weight: 600; border: 1px solid {theme.accent}; border-radius: 5px;
        padding: 4px 14px; }}
    QToolButton[role="primary"] {{ padding: 3px 14px; }}
    QPushButton[role="primary"]:disabled, QToolButton[role="primary"]:disabled {{ background: {under};
        color: {theme.off}; border-color: {theme.line}; border-style: {"dashed" if high else "solid"}; }}
    QPushButton[role="primary"]:focus, QToolButton[role="primary"]:focus {{ border: 2px solid {theme.ink};
        padding: 3px 13px; }}
    QToolButton[role="primary"]:focus {{ padding: 2px 13px; }}
    QToolButton[role="legend"] {{ background: transparent; border: none; padding: 1px 4px; }}
    QToolButton[role="legend"][compact="true"] {{ padding: 1px 0px; font-size: {points("caption")}pt; }}
    QToolButton[role="legend"]:!checked {{ color: {theme.muted}; }}
    QToolButton[role="legend"]:hover {{ background: {theme.alternate}; border-radius: 3px; }}
    QToolButton[role="legend"]:focus {{ border: 1px solid {theme.accent}; padding: 0px 3px; }}
    QToolButton[role="legend"][compact="true"]:focus {{ padding: 0px; }}
    QToolButton[role="switch"] {{ background: transparent; border: none; padding: 1px 4px;
        color: {theme.muted}; }}
    QToolButton[role="switch"]:checked {{ color: {theme.ink}; background: {theme.window};
        border-radius: 3px; }}
    QToolButton[role="switch"]:hover {{ color: {theme.accent}; }}
    QToolButton[role="switch"]:focus {{ border: 1px solid {theme.accent}; padding: 0px 3px; }}
    QToolButton[role="choice"]:checked {{ border-color: {theme.accent}; font-weight: 600; }}
    QFrame[role="divider"] {{ color: {theme.line}; }}
    QStatusBar::item {{ border: none; }}
    QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
    """
    )


ICON = 4 * GRID  # pixels of one beside text of the usual size
ICONS = {
    "run": "play",
    "cancel": "stop",
    "open": "folder-open",
    "export": "export",
    "form": "sliders-horizontal",
    "whole": "corners-out",
    "back": "corners-in",
    "notes": "info",
}


def icon(name: str, theming: Theming, role: str = "ink") -> QIcon:
    """An icon in the theme's colours. name: a key of ICONS; role: a colour of the theme."""
    import qtawesome  # imported late: it loads fonts, which only the first icon needs

    theme = theming.theme
    return qtawesome.icon(
        f"ph.{ICONS[name]}", color=QColor(getattr(theme, role)), color_disabled=QColor(theme.off)
    )


def put_icon(target: QAction | QAbstractButton, name: str, theming: Theming, role: str = "ink") -> None:
    """Give an action or a button an icon, and redraw it when the theme changes. It replaces an earlier
    icon."""
    if not isinstance(target.property("icon-name"), str):
        theming.changed.connect(lambda: _draw_icon(target, theming))
    target.setProperty("icon-name", name)
    target.setProperty("icon-role", role)
    _draw_icon(target, theming)


def _draw_icon(target: QObject, theming: Theming) -> None:
    assert isinstance(target, QAction | QAbstractButton)
    if isinstance(target, QAbstractButton):
        target.setIconSize(QSize(scaled(ICON), scaled(ICON)))
    target.setIcon(icon(str(target.property("icon-name")), theming, str(target.property("icon-role"))))
