"""How much the worker thread has done: by it the controller distinguishes work that advances from work that hangs."""


class WorkCounter:
    """Counts single steps: a call that ended, or a piece of a file written."""

    def __init__(self) -> None:
        self.done = 0

    def step(self) -> None:
        self.done += 1


WORK = WorkCounter()  # one worker thread, so one a process
