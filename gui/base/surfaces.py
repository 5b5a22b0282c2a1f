"""How controls and surfaces look in a theme: quiet, on one grid, without boxes in boxes.

A surface is told from what it lies on by its colour, a control by a line around it, and what is chosen by the
accent's colour. Fusion draws what is not said here (check boxes, menus).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gui.base.scale import BROAD, CONTROL, GAP, GRID, ROUND, TIGHT, WIDE, points

if TYPE_CHECKING:
    from gui.base.theme import Theme

_PICTURES = Path(__file__).with_name("pictures").as_posix()


def surfaces(theme: Theme) -> str:
    """The part of the style sheet that is about controls, lists and bars."""
    return _text(theme) + _controls(theme) + _lists(theme) + _frames(theme)


def _text(theme: Theme) -> str:
    return f"""
    QLabel[role="chart-title"] {{ color: {theme.muted}; font-weight: 600; }}
    QLabel[role="caption"] {{ color: {theme.muted}; font-size: {points("caption")}pt; }}
    QLabel[role="heading"] {{ font-size: {points("heading")}pt; }}
    QLabel[role="finding"] {{ color: {theme.ink}; font-size: {points("finding")}pt; }}
    QLabel[role="verdict"] {{ color: {theme.ink}; font-size: {points("verdict")}pt; font-weight: 600; }}
    QLabel[role="what-fills"] {{ color: {theme.muted}; font-size: {points("empty")}pt; }}
    QLabel[role="badge"] {{ color: {theme.ink}; background: {theme.paper}; border-radius: {ROUND}px;
        padding: {TIGHT}px {WIDE}px; }}
    QLabel[role="badge"][good="true"] {{ color: {theme.good}; }}
    """


def _controls(theme: Theme) -> str:
    field = f"""background: {theme.paper}; border: 1px solid {theme.line}; border-radius: {CONTROL}px;
        selection-background-color: {theme.accent}; selection-color: {theme.on_accent};"""
    return f"""
    QPushButton {{ background: {theme.button}; border: 1px solid {theme.line};
        border-radius: {CONTROL}px; padding: {TIGHT}px {WIDE}px; }}
    QPushButton:hover {{ border-color: {theme.muted}; }}
    QPushButton:pressed {{ background: {theme.line}; }}
    QPushButton:focus {{ border-color: {theme.accent}; }}
    QPushButton:disabled {{ background: transparent; color: {theme.muted}; }}
    QPushButton[role="primary"]:hover {{ border-color: {theme.ink}; }}
    QPushButton[role="link"] {{ background: transparent; border: 1px solid transparent; color: {theme.accent};
        padding: {TIGHT}px {GAP}px; text-align: left; }}
    QPushButton[role="link"]:hover, QPushButton[role="link"]:focus {{ border-color: {theme.line}; }}
    QToolButton {{ background: {theme.button}; border: 1px solid {theme.line};
        border-radius: {CONTROL}px; padding: {GRID - 1}px {GAP}px; }}
    QToolButton:hover {{ border-color: {theme.muted}; }}
    QToolButton:focus {{ border-color: {theme.accent}; }}
    QToolButton:disabled {{ color: {theme.muted}; }}
    QToolButton[autoRaise="true"] {{ background: transparent; border: 1px solid transparent;
        padding: {GRID - 1}px; }}
    QToolButton[autoRaise="true"]:hover {{ background: {theme.line}; }}
    QToolButton[popupMode="2"] {{ padding-right: {GAP + 3 * GRID}px; }}
    QToolButton::menu-indicator {{ image: url({_PICTURES}/down.svg); width: 10px; height: 10px;
        subcontrol-origin: padding; subcontrol-position: center right; right: {GRID}px; }}
    QComboBox {{ {field} padding: {GRID - 1}px {GAP}px; }}
    QComboBox:editable {{ padding-left: {GRID + 2}px; }}
    QAbstractSpinBox QLineEdit {{ border: none; padding: 0 0 0 {TIGHT}px; background: transparent; }}
    QComboBox:hover, QAbstractSpinBox:hover, QLineEdit:hover {{ border-color: {theme.muted}; }}
    QComboBox:focus, QAbstractSpinBox:focus, QLineEdit:focus {{ border-color: {theme.accent}; }}
    QComboBox:disabled, QAbstractSpinBox:disabled, QLineEdit:disabled {{ background: transparent;
        color: {theme.muted}; }}
    QComboBox::drop-down {{ border: none; width: {5 * GRID}px; }}
    QComboBox::down-arrow {{ image: url({_PICTURES}/down.svg); width: 12px; height: 12px; }}
    QComboBox QLineEdit {{ border: none; padding: 0; background: transparent; }}
    QComboBox QAbstractItemView {{ background: {theme.paper}; border: 1px solid {theme.line};
        outline: none; }}
    QLineEdit {{ {field} padding: {GRID - 1}px {TIGHT}px; }}
    QSpinBox, QDoubleSpinBox {{ {field} padding: {GRID - 1}px {TIGHT}px {GRID - 1}px {GRID + 2}px; }}
    QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ border: none; background: transparent;
        width: {4 * GRID}px; }}
    QAbstractSpinBox::up-arrow {{ image: url({_PICTURES}/up.svg); width: 10px; height: 10px; }}
    QAbstractSpinBox::down-arrow {{ image: url({_PICTURES}/down.svg); width: 10px; height: 10px; }}
    QCheckBox {{ spacing: {GRID + 2}px; }}
    QCheckBox::indicator, QListView::indicator {{ width: 13px; height: 13px; background: {theme.paper};
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
    return f"""
    QTableView, QListView, QTreeView {{ background: {theme.paper}; border: none;
        border-radius: {ROUND}px; }}
    CheckList::item {{ padding: 2px 0; }}
    QTreeView::item {{ padding: 3px; }}
    QHeaderView {{ background: {theme.paper}; border: none; }}
    QHeaderView::section {{ background: {theme.paper}; color: {theme.muted}; border: none;
        border-bottom: 1px solid {theme.line}; padding: {TIGHT}px {GRID - 1}px; }}
    QHeaderView::section:hover {{ color: {theme.ink}; }}
    QHeaderView::up-arrow {{ image: url({_PICTURES}/up.svg); width: 10px; height: 10px;
        subcontrol-position: center right; }}
    QHeaderView::down-arrow {{ image: url({_PICTURES}/down.svg); width: 10px; height: 10px;
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
