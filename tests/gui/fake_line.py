"""A line to a machine elsewhere, for the window's tests: `fake_line.py FOLDER NAME PLAN -- WORKER…`.

It starts the worker on this machine, as one of NAME, and hands on what each says. PLAN: "queued" (it waits
in a queue until FOLDER has a file `turn`), "drops" (as the second case begins the machine does not answer any
more, until there is a file `back`), "refused" (there is no way to it). FOLDER/lines has a line a process.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path


def say(**message: object) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def wait_for(file: Path, **message: object) -> None:
    while not file.exists():
        say(**message)
        time.sleep(0.05)


def hand_on(process: subprocess.Popen) -> None:
    """What is said here, as long as anything is; its end too."""
    while data := os.read(0, 1 << 16):
        process.stdin.write(data)
        process.stdin.flush()
    process.stdin.close()


def main() -> None:
    folder, name, plan, _, *worker = sys.argv[1:]
    place = Path(folder)
    with (place / "lines").open("a") as lines:
        lines.write(f"{' '.join(worker[-1:])}\n")
    if "refused" in plan:
        sys.exit(f"{name} cannot be reached: ssh: connect to host {name} port 22: Connection refused")
    if "queued" in plan:
        wait_for(place / "turn", type="progress", text=f"waiting in the queue of {name}")
    process = subprocess.Popen(
        worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "MACHINE": name}
    )
    threading.Thread(target=hand_on, args=(process,), daemon=True).start()
    started = 0
    for line in process.stdout:
        os.write(1, line)
        started += b'"type":"case_started"' in line
        if "drops" in plan and started == 2 and not (place / "back").exists():
            wait_for(place / "back", **json.loads(line) | {"stage": "away"})
            os.write(1, line)
    os._exit(process.wait())


main()
