"""The C parts once more, in the plainest Python: the oracle of the tests."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction

from ivypy.protocol.histogram import bucket_of

Cells = Mapping[tuple[int, int], float]  # (quantum, bucket) -> weight


def parse_histogram(text: str, lead: int, columns: int) -> list[tuple[int, int, int, dict[int, int]]] | None:
    """(stamp, direction, size, counts) of every row; None where a line is no row."""
    rows = []
    for line in text.split("\n"):
        if not line.strip(" \t\r"):
            continue
        cells = [cell.strip(" \t\r") for cell in line.split(",")]
        if not all(cell.isascii() and cell.isdigit() and len(cell) <= 18 for cell in cells):
            return None
        numbers = [int(cell) for cell in cells]
        if len(numbers) != lead + columns or numbers[1] > 2:
            return None
        counts = {bucket: count for bucket, count in enumerate(numbers[lead:]) if count}
        rows.append((numbers[0], numbers[1], numbers[2] if lead == 3 else -1, counts))
    return rows


def quantum_of(moment: int, length: int) -> int:
    return (moment - 1) // length


def share_before(moment: int, start: int, end: int, latency: Fraction | None) -> Fraction:
    """The share of a record (start, end] at or before `moment`: the integral of its density, exactly.

    `latency` None: uniform. Else in-flight: the sum of one variable uniform over (start, end] and one uniform over
    (-latency, 0]; its distribution is the second integral of four steps.
    """
    if latency is None or latency == 0:
        if moment >= end:
            return Fraction(1)
        return Fraction(max(moment - start, 0), end - start)
    if start == end:
        return min(max((moment - (start - latency)) / latency, Fraction(0)), Fraction(1))

    def ramp(x: Fraction) -> Fraction:
        return max(x, Fraction(0)) ** 2 / 2

    area = ramp(moment - start + latency) - ramp(moment - start + Fraction(0)) - ramp(moment - end + latency)
    return (area + ramp(moment - end + Fraction(0))) / (latency * (end - start))


def spread(
    records: Iterable[tuple[int, int, Mapping[int, int]]],
    length: int,
    latencies: list[Fraction] | None = None,
    earliest: int | None = None,
) -> Cells:
    """Records (start, end, counts) added into quanta."""
    cells: dict[tuple[int, int], float] = defaultdict(float)
    for start, end, counts in records:
        for bucket, count in counts.items():
            latency = latencies[bucket] if latencies is not None else None
            begin = start - (latency or 0)
            low, high = quantum_of(int(begin // 1) + 1, length), quantum_of(end, length)
            for quantum in range(min(low, high), high + 1):
                upto = share_before((quantum + 1) * length, start, end, latency) if quantum < high else Fraction(1)
                below = share_before(quantum * length, start, end, latency) if quantum > low else Fraction(0)
                at = quantum if earliest is None else max(quantum, earliest)
                cells[at, bucket] += float(upto - below) * count
    return {place: weight for place, weight in cells.items() if weight}


def spread_samples(samples: Iterable[tuple[int, int]], length: int, in_flight: bool) -> Cells:
    """Samples (end, value) added into quanta."""
    cells: dict[tuple[int, int], float] = defaultdict(float)
    for end, value in samples:
        counts = {bucket_of(value): 1}
        latencies = [Fraction(value)] * (bucket_of(value) + 1) if in_flight else None
        for place, weight in spread([(end, end, counts)], length, latencies).items():
            cells[place] += weight
    return cells
