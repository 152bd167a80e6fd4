"""fio's histogram logs (write_hist_log): rows of `time_ms, direction, block_size, bucket counts`.

Rule: the counts are of the I/Os since the direction's previous row; what fio never writes (the I/Os after the last
row) is estimated by unlogged_tail.py. The block size is that of the I/O that triggered the row, so it is
ignored.
"""

from collections.abc import Iterator

from .bad_lines import line_of_row
from .fio_row_intervals import Aligner
from .records import NS_PER_MS, LogClock, Records
from .row_arrays import HistogramRows
from .text_rows import Reading


def read(reading: Reading, split_late: bool = True) -> Iterator[Records]:
    """The log's records, a batch at a time; each batch is valid until the next. Faults go to `reading`.

    `split_late`: see fio_row_intervals.py; without, a record is a row.
    """
    source, into = reading.source, HistogramRows(reading.source)
    period_ms = source.period_ns / NS_PER_MS if source.period_ns else None
    aligner = Aligner(period_ms, source.epoch, source.begins_ms, layout=source.layout, split_late=split_late)
    clock = LogClock(source.start_ns, source.drift)
    for text, (rows, entries, *_) in reading.parse(into.parse):
        records, backwards = aligner.records(
            into.stamps[:rows], into.directions[:rows], into.first[: rows + 1], into.buckets[:entries],
            into.counts[:entries], clock,
        )  # fmt: skip
        if len(records):
            yield records
        if backwards:
            reading.fault(
                f"the stamp goes back from {backwards.before_ms} to {backwards.stamp_ms} ms: expected stamps that rise "
                f"within a direction, or (in a log that jobs share) that begin again near {backwards.first_ms} ms",
                line=reading.line + line_of_row(text, backwards.row),
                left_out="the rest of the file",
            )
            return
    reading.late_rows, reading.catch_up_rows = aligner.late_rows, aligner.catch_up_rows
    reading.repeated_jobs = aligner.repeated_jobs
