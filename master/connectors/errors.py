"""How a connector fails: by its own fault, which costs it alone."""


class ConnectorFault(Exception):
    """What is wrong with a connector, and what to do about it."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(f"{what}; {remedy}" if remedy else what)
        self.what = what
        self.remedy = remedy
