"""The bucket layout of every latency histogram, as numbers.

Rule: log-linear, 64 buckets per power of two, in nanoseconds. Values below 128 ns have a bucket each; from
there bucket widths double with every power of two, so a bucket is never wider than 1/64 of its lower edge and
its middle never further than 1/128 from any value in it. It is fio's layout with more groups: fio's 29 groups
end at 17 s, these 40 at 2**45 ns (9.8 hours). What is longer is counted in the last bucket; the exact maximum
travels beside the histogram. The engine has the same arithmetic in C; a test compares every edge.
"""

from collections.abc import Sequence

BITS = 6  # 2**6 buckets per power of two
PER_GROUP = 1 << BITS
GROUPS = 40
BUCKETS = GROUPS * PER_GROUP  # 2560
LIMIT_NS = 1 << (GROUPS + BITS - 1)  # the first value that no longer fits: 2**45 ns


def bucket_of(ns: int) -> int:
    """The bucket that holds a latency of `ns` nanoseconds."""
    if ns >= LIMIT_NS:
        return BUCKETS - 1
    shift = max(ns.bit_length() - 1 - BITS, 0)
    if ns < 2 * PER_GROUP:
        return ns
    return ((shift + 1) << BITS) + ((ns >> shift) & (PER_GROUP - 1))


def lower_edge(bucket: int) -> int:
    """The smallest latency in nanoseconds that `bucket` holds; of BUCKETS, LIMIT_NS."""
    if bucket < 2 * PER_GROUP:
        return bucket
    group, offset = divmod(bucket, PER_GROUP)
    return (PER_GROUP + offset) << (group - 1)


def lower_edges() -> Sequence[int]:
    """All BUCKETS lower edges, and LIMIT_NS behind them."""
    return [lower_edge(bucket) for bucket in range(BUCKETS + 1)]
