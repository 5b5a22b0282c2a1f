"""A folder that is asked for may be a new one."""

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QLineEdit

from gui.widgets.controls import FolderDialog, ask_folder


@pytest.mark.parametrize("there", [True, False])
def test_a_name_that_is_typed_is_taken_and_the_folder_made(qtbot, tmp_path, there):
    wanted = tmp_path / "my kernels"
    if there:
        wanted.mkdir()

    def type_it():
        dialog = QApplication.activeModalWidget()
        assert isinstance(dialog, FolderDialog)
        dialog.findChild(QLineEdit, "fileNameEdit").setText("my kernels")
        dialog.accept()

    QTimer.singleShot(50, type_it)
    assert ask_folder(None, "The folder for the new kernel", str(tmp_path)) == str(wanted)
    assert wanted.is_dir()


def test_none_is_made_where_the_user_thinks_better_of_it(qtbot, tmp_path):
    QTimer.singleShot(50, lambda: QApplication.activeModalWidget().reject())
    assert ask_folder(None, "The folder for the new kernel", str(tmp_path)) == ""
    assert not list(tmp_path.iterdir())
