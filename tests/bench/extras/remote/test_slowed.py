"""A long way to the machine that measures: it costs waiting, and no figure."""

import socket
import threading
import time

from bench.run import client
from bench.run.kinds.comparison import KIND as COMPARISON
from tests.bench.extras.remote import loopback, there
from tests.bench.extras.remote.slowed import slowed


def test_the_proxy_delays_and_hands_all_on_in_order():
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def echo():
            end, _ = listening.accept()
            with end:
                while data := end.recv(1 << 16):
                    end.sendall(data)

        threading.Thread(target=echo, daemon=True).start()
        port = listening.getsockname()[1]
        with slowed(port, 0.1, 1e6) as far, socket.create_connection(("127.0.0.1", far)) as end:
            began = time.monotonic()
            end.sendall(b"?")
            assert end.recv(1) == b"?"
            assert time.monotonic() - began >= 0.1
            sent = bytes(range(256)) * 1200  # 0.3 s at 1 MB/s
            began = time.monotonic()
            threading.Thread(target=lambda: (end.sendall(sent), end.shutdown(socket.SHUT_WR))).start()
            got = b""
            while data := end.recv(1 << 16):
                got += data
            assert got == sent
            assert time.monotonic() - began >= 0.1 + len(sent) / 1e6


@loopback.needs_sshd
def test_a_run_through_ssh_over_a_long_way_has_the_figures_of_the_worker(tmp_path):
    with (
        loopback.loopback(tmp_path / "sshd", **{there.SAID: str(tmp_path / "lab" / "said")}) as server,
        slowed(server.port) as port,
        loopback.entered(server),
    ):
        server.lead_through(port)
        place = there.make(tmp_path, host=loopback.HOST, launch=(), shared=True)
        run = there.run_of(5)
        with COMPARISON.create(tmp_path / "run", run) as folder:
            outcome = client.run(run.job, run.cases, folder, command=there.command(place))
            found = folder.measurements()
        assert outcome.reason == ""
        assert [(m.case.key, m.samples_ns[0]) for m in found] == there.said(place)
        assert len(found) == 5
        assert {m.facts["machine"] for m in found} == {"lab"}
        there.until(lambda: not there.processes(place))
