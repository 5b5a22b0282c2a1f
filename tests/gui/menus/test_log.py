"""A log is seen while it grows."""

from gui.base import faults
from gui.menus.log import LogWindow


def test_what_is_added_to_a_log_is_seen_and_the_end_stays_in_sight(make_window, tmp_path):
    path = faults.log_path()
    path.write_text("".join(f"line {n}\n" for n in range(200)))
    window = make_window("mute", begin=False)
    window.menu_actions.by_name["log"].trigger()
    log = window.findChild(LogWindow)
    assert "line 199" in log.text.toPlainText()
    bar = log.text.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    with path.open("a") as file:
        file.write("and one more\n")
    log.look()
    assert log.text.toPlainText().endswith("and one more\n")
    assert bar.value() == bar.maximum()
    bar.setValue(0)
    with path.open("a") as file:
        file.write("and another\n")
    log.look()
    assert bar.value() == 0, "who reads further up is left there"

    log.source.choose("worker")
    log.source.activated.emit(1)
    assert log.text.toPlainText() == ""
    assert "There is no run" in log.text.placeholderText()
    window.state.folder = tmp_path
    (tmp_path / "worker.log").write_text("nvrtc: warning\n")
    log.look()
    assert log.text.toPlainText() == "nvrtc: warning\n"
