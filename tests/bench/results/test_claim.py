"""The claim on a run's folder: one writes, and who asks whether somebody does is in nobody's way."""

import threading

from bench.results.claim import LOCK_FILE, Claim, claimed


def test_who_asks_whether_somebody_writes_hinders_nobody(tmp_path):
    (tmp_path / LOCK_FILE).touch()
    done = threading.Event()

    def ask():
        while not done.is_set():
            claimed(tmp_path)

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    try:
        for _ in range(30):
            claim = Claim(tmp_path)
            claim.take()
            assert claimed(tmp_path)
            claim.release()
    finally:
        done.set()
        for thread in asking:
            thread.join()
    assert not claimed(tmp_path)
    assert not claimed(tmp_path / "nowhere")
