"""How much the worker thread has done: what tells the controller work that goes on from work that hangs."""


class WorkCounter:
    """Remembers how many single steps were done: a look, or a piece of a file written."""

    def __init__(self) -> None:
        self.done = 0

    def step(self) -> None:
        self.done += 1


WORK = WorkCounter()  # one worker thread, so one a process
