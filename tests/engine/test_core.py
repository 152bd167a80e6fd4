"""The core without Python, under sanitizers: whole lives on real backends, and a backend that fails in every way.

What a backend does to the core is a matter of exact figures, on a machine with simulated time (simulation.c). What
threads do to each other is one of real threads, which wait for events and never for speed.
"""

import shutil
from pathlib import Path

import pytest

from tests.support.engine import BACKENDS, run

SCENARIOS = [
    "errors",  # all I/Os fail at once: counted, in no latency, and the core is not taken
    "refused",  # the submit call refuses one I/O
    "taken_in_parts",  # the kernel takes less than was offered
    "again_from_the_call",  # the submit call says EAGAIN for a while
    "again",  # I/Os come back with EAGAIN while the queue is full: they keep their times, and the cap comes down
    "always_again",  # a device that says EAGAIN whatever its queue
    "full_queue",  # never more in flight than nr_requests
    "other_queues",  # of different hardware queues each thread has all,
    "same_queue",  # of one and the same a part
    "not_pinned",  # a thread that may submit to any of them is taken to submit to that of the others,
    "one_not_pinned",  # whichever that is
    "filled_by_others",  # who finds them full with nothing in flight asks again without waiting
    "resized",  # the block size changes while I/Os are in flight: none is short, the queue never over-full
    "hung",  # of two LUNs on a thread, one hangs at 256 tags: the other keeps its rate
    "came_back",  # more I/Os came back after the step than one look at the ring finds: none is missing
    "left_out",  # nor is anything else, where the step that they come back in has no part of their instance
    "new_data",  # none of those that were in flight then is written again with the same data
    "died",  # a thread cannot go on: it says why, and the step ends
    "stray_behind",  # an address goes wrong, behind what was agreed to: the thread dies, and no write goes there,
    "stray_before",  # before it,
    "stray_elsewhere",  # in another one,
    "stray_far",  # or beyond all bounds;
    "stray_write",  # nor a part of a mix: neither a write,
    "stray_trim",  # nor a trim,
    "stray_zeroes",  # nor zeroes;
    "stray_direction",  # nor does a write go that should have been a read
    "lease_while_deaf",  # the lease ends while the thread is frozen: nothing is submitted afterwards
    "stuck_thread",  # a thread hangs in the submit call for several subintervals: nothing is lost
    "held_thread",  # a thread never comes back: the step ends all the same
    "stalled_at_the_end",  # the commanding thread is put aside at the end: what threads handed over meanwhile counts
    "late_by_turns",  # each of two threads is late at one boundary: every result is of its own subinterval
    "stalled_even",  # what fell due in a long stall is counted in the subinterval in which it did,
    "stalled_exponential",  # with exponential gaps, too,
    "edited_while_stalled",  # and although an edit was made meanwhile
    "lease_in_submit",  # the kernel takes a batch in parts, and the lease ends between them
    "lease_renewed_in_submit",  # and is renewed at once: the thread goes on
    "failed_after_the_end",  # what fails after the last boundary is counted apart,
    "short_after_the_end",  # as is what moves less than it should
    "edited_and_deleted",  # an edit and a delete in a row act in this order
    "caught_up",  # what waits for a tag while a late thread makes up for that is late as well
    "slowed_down",  # what waits for storage is not
    "paused",  # neither what is overdue nor what the kernel gave back goes to a paused LUN
    "conserved",  # due = completed + failed + discarded + backlog + in flight, whatever is edited and fails,
    "conserved_expiring",  # also with drop_after,
    "conserved_expiring_at_random",  # and exponential gaps,
    "conserved_until",  # or an end by volume,
    "conserved_flushing",  # or with flushes,
    "conserved_mixed",  # or of mixes,
    "conserved_skewed",  # or held in proportion to each other, and who is held goes on
    "let_go",  # as the one behind is paused, gets a rate, loses its skew or rests, but not for what that has missed;
    "let_go_by_an_end",  # or has ended;
    "beside_the_held",  # others go as they would, and who is held is not late
    "failed_flushes",  # a flush that fails is an error,
    "behind_flushes",  # a write that waits for its tag is not late,
    "behind_flushes_of_free_tags",  # whether or not it was long free before,
    "behind_a_late_flush",  # but for what the flush was late,
    "hung_flush",  # those that hang show,
    "given_back_flush",  # one that the kernel did not take goes after a pause,
    "overtaken_flushes",  # none begins after its instance's time, or in a cooldown,
    "paused_flush",  # nor in a pause
    "ended_by_errors",  # an I/O that fails counts towards that, too;
    "ended_late",  # it comes with the last completion;
    "ended_after_a_pause",  # what the kernel gave back and a pause discarded is still to be done;
    "ended_after_a_stall",  # and after hours no more is due than that
    "expired",  # nothing is submitted that waited for longer than drop_after
    "overloaded_expiring",  # and the waits of what is left are the storage's
    "full_device",  # waiting for room in a full device is not the generator's lateness;
    "full_share",  # waiting for a share of one that is not full is
    "came_back_to_think",  # users whose tags I/Os of an earlier step hold begin when those come back
    "late_users",  # what a user's cycle is longer beside others is lateness and reap delay,
    "late_users_beside_others",  # whatever shares the queue with them,
    "late_users_of_two_loads",  # be it users of another instance,
    "late_beside_users",  # as is what a neighbour waits for that goes at a rate,
    "users_behind_a_batch",  # or what one batch takes too long,
    "users_again",  # but not what the kernel makes users wait,
    "behind_a_late_one",  # nor the wait for an I/O of the last step, however late that was
    "fewer_users",  # those who were ready when an edit asks for fewer are not late
    "idle_neighbour",  # an idle neighbour with 2000 tags leaves a busy instance its tags,
    "busy_neighbours",  # of two busy ones each has a part, and the queue is never over-full
    "paused_in_turn",  # a paused instance does not keep the turn of its neighbour in a full queue
    "blocking_neighbour",  # what completes while another LUN's submit call blocks has a reap delay, and goes alone
    "blocking_in_turn",  # nor do others wait in one submit call with a LUN that blocks
    "batch_in_time",  # a batch adds no more than a tenth to the service time of its I/Os
    "suspended",  # the machine was asleep while the step ran: no I/O after it, and the reason has a name
    "overtaken",  # an I/O that was gathered before a boundary and goes after it was due all the while
    "preempted",  # what I/Os take longer while others have the thread's core is a reap delay,
    "late_for_a_tag",  # and what others wait for meanwhile is lateness,
    "late_for_a_tag_expiring",  # also with drop_after
]

# Those in which threads meet: with the one that commands them, in an edit or at the end, or in a device's queue.
PARALLEL = [
    "same_queue", "one_not_pinned", "resized", "died", "stuck_thread", "held_thread", "edited_while_stalled",
    "lease_renewed_in_submit", "edited_and_deleted", "paused", "conserved_expiring_at_random", "idle_neighbour",
    "busy_neighbours", "ended_after_a_pause", "conserved_skewed",
]  # fmt: skip

# The cycle counter is not simulated.
COUNTER = ["counter_back", "counter_ahead"]

HANGS = [
    "hung_open",  # a LUN hangs when it is opened: everything else goes on, and the engine closes
    "hung_go",  # a thread hangs while `go` prepares it: a halt acts, close keeps its limit
    "slow_errand",  # and `go` gives it up
    "slow_delete",  # a thread does not let go of an instance: it stays, until it does
    "slow_exit",  # nor of what it drives when it is to end
    "prepared",  # memory and contexts come before `go`, from all threads at once
    "slow_progress",  # a thread is waited for as long as it advances
    "late_go",  # threads are not ready in time: `go` gives up, and the next one works
    "whole_huge_pages",  # what large I/O buffers lie in
    "long_collection",  # a collection that takes its time: commands and questions do not wait for it
]


# Seconds of steps; the others are of one thing each.
LENGTHY = {
    "late_for_a_tag_expiring",
    "conserved",
    "conserved_expiring",
    "conserved_expiring_at_random",
    "conserved_until",
    "conserved_flushing",
    "conserved_mixed",
    "conserved_skewed",
    "let_go",
    "paused_in_turn",
    "late_users",
    "late_users_of_two_loads",
    "late_users_beside_others",
}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    with open(path, "wb") as file:
        file.truncate(16 << 20)
    return path


@pytest.mark.parametrize(
    "scenario", [pytest.param(one, marks=[pytest.mark.slow] * (one in LENGTHY)) for one in SCENARIOS]
)
def test_faults_of_storage_and_kernel_in_simulated_time(scenario: str, image: Path) -> None:
    run("faults", scenario, image, sanitizer="simulated")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", PARALLEL)
def test_threads_that_meet_race_for_nothing(scenario: str, image: Path) -> None:
    run("faults", scenario, image, sanitizer="tsan")


@pytest.mark.parametrize("scenario", COUNTER)
def test_a_counter_that_begins_anew_or_jumps_stops_all_io(scenario: str, image: Path) -> None:
    """As in a virtual machine that is restored."""
    run("faults", scenario, image)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", HANGS)
@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
def test_a_hang_outside_of_io_delays_neither_commands_nor_the_end(scenario: str, sanitizer: str, image: Path) -> None:
    run("hangs", scenario, image, sanitizer=sanitizer)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
@pytest.mark.parametrize("rounds", [20, pytest.param(100, marks=pytest.mark.long)])
def test_edits_swaps_and_every_ending_at_once(backend: str, sanitizer: str, rounds: int, image: Path) -> None:
    """Every result adds up: due = submitted + dropped + backlog, submitted = completed + errors + in flight."""
    run("life", backend, image, rounds, sanitizer=sanitizer)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_memory_is_read_before_it_is_written(backend: str, image: Path) -> None:
    """Fairly scheduled: valgrind lets no other thread run while one waits in io_uring's system call."""
    if shutil.which("valgrind") is None:
        pytest.skip("this machine lacks valgrind")
    run(
        "life",
        backend,
        image,
        20,
        sanitizer="plain",
        wrapper=["valgrind", "--fair-sched=try", "-q", "--error-exitcode=9", "--leak-check=full"],
    )
