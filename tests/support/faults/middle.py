"""A man in the middle: runs a command and relays its standard input and output, cut or delayed as it is told.

    python -m tests.support.faults.middle PLACE WORD...

Each has a socket of its own, PLACE.PID.orders, as a host has several connections; PLACE.PID.child has the pid of the
command.
Each datagram is an order: `cut`, `mend`, `delay SECONDS`, `garbage`. While cut, nothing passes and nothing is
lost, as with a cable that was pulled; a delay is added to each way; garbage is a line that the command did not write.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from typing import Final

CHUNK: Final = 1 << 16


class Line:
    """What both ways share: whether they pass anything, and how late."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.cut = False
        self.delay_s = 0.0

    def order(self, word: str, *more: str) -> None:
        with self.changed:
            self.cut = word == "cut" or (self.cut and word != "mend")
            self.delay_s = float(more[0]) if word == "delay" else self.delay_s
            self.changed.notify_all()
        if word == "garbage":
            os.write(1, b'\n{"type":"result","subinterval":1e999}\n')


def relay(line: Line, source: int, sink: int) -> None:
    """Pass on what comes, in its order, until it ends."""
    waiting: deque[tuple[float, bytes]] = deque()
    arrived = threading.Condition()

    def deliver() -> None:
        while True:
            with arrived:
                arrived.wait_for(lambda: waiting)
                since, data = waiting.popleft()
            with line.changed:
                line.changed.wait_for(lambda: not line.cut)
                due = since + line.delay_s
            time.sleep(max(due - time.monotonic(), 0.0))
            with line.changed:
                line.changed.wait_for(lambda: not line.cut)
            try:
                while data:
                    data = data[os.write(sink, data) :]
            except OSError:
                return
            if not since:
                os.close(sink)
                return

    threading.Thread(target=deliver, daemon=True).start()
    while True:
        data = os.read(source, CHUNK)
        with arrived:
            waiting.append((time.monotonic() if data else 0.0, data))
            arrived.notify_all()
        if not data:
            return


def main(place: str, *words: str) -> int:
    line = Line()
    orders = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    mine = f"{place}.{os.getpid()}"
    orders.bind(f"{mine}.orders")
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    there = threading.Thread(target=relay, args=(line, 0, child.stdin.fileno()), daemon=True)
    back = threading.Thread(target=relay, args=(line, child.stdout.fileno(), 1), daemon=True)

    def obey() -> None:
        while True:
            line.order(*orders.recv(1000).decode().split())

    for thread in (there, back, threading.Thread(target=obey, daemon=True)):
        thread.start()
    with open(f"{mine}.child", "w") as file:
        file.write(str(child.pid))
    code = child.wait()
    os.unlink(f"{mine}.child")
    back.join(1.0)
    os.unlink(f"{mine}.orders")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
