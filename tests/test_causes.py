"""The cause that stands before the reasons: which finding explains which."""

import re
from dataclasses import replace

import pytest

from ivypy.master.causes import EXPLAINS, cause_of, in_options, remedy_of
from ivypy.master.cli.quick import quick
from ivypy.master.verdicts import ALL, USUAL_PURPOSE, Finding, Reason, Severity

BUSY = Finding(Reason.CPU_CONTENTION, "h1: long", Severity.NOTE, cause="other processes used 61 % of this host's CPU")
STARVED = replace(BUSY, chosen=Severity.INVALID)
LIMIT = Finding(Reason.HOST_LIMIT, "busiest core 99 %")
QUEUE = Finding(Reason.QUEUE_DEPTH_LIMITED, "1,234", cause="the device accepts 32 at once")
OTHERS = Finding(Reason.FOREIGN_IO, "others 9 MiB, ivypy 11 MiB", share=0.45)
LOST = Finding(Reason.HOST_LOST, "b: gone")
LATE = Finding(Reason.GENERATOR_LATE, "34% of the mean", Severity.INVALID)
A_LITTLE_LATE = Finding(Reason.GENERATOR_LATE, "12% of the mean", Severity.NOTE)
DELAYED = Finding(Reason.REAP_DELAY, "37% of the p99", Severity.INVALID)
UNSUSTAINED = Finding(Reason.LOAD_NOT_SUSTAINED)
MISSED = Finding(Reason.SLO_MISSED, "", Severity.FAILED)
ERRORS = Finding(Reason.IO_ERRORS, "5: EIO 5", Severity.PARTIAL, cause="0.1 % of the I/Os failed (EIO 5)")
IN_TAIL = Finding(Reason.FAILED_TAIL)
FAILED = Finding(Reason.IO_ERRORS, "500: EIO 500", Severity.INVALID, cause="50 % of the I/Os failed (EIO 500)")


@pytest.mark.parametrize(
    ("findings", "cause"),
    [
        ((), ""),
        ((BUSY,), ""),
        ((LATE,), ""),
        ((LATE, BUSY), "other processes used 61 % of this host's CPU"),
        ((STARVED,), "other processes used 61 % of this host's CPU"),
        ((A_LITTLE_LATE, BUSY), ""),
        ((ERRORS, BUSY), ""),
        ((ERRORS, LATE, BUSY), "other processes used 61 % of this host's CPU"),
        ((STARVED, FAILED, UNSUSTAINED), "50 % of the I/Os failed (EIO 500)"),
        ((FAILED,), "50 % of the I/Os failed (EIO 500)"),
        ((ERRORS, FAILED), "50 % of the I/Os failed (EIO 500)"),  # of several the worst
        ((ERRORS, IN_TAIL), "0.1 % of the I/Os failed (EIO 5)"),
        ((QUEUE, UNSUSTAINED), "the device accepts 32 at once"),
        ((QUEUE, UNSUSTAINED, BUSY), "other processes used 61 % of this host's CPU"),
        ((UNSUSTAINED, LIMIT), "the host has no CPU time left: busiest core 99 %"),
        ((Finding(Reason.EARLIER_BACKLOG), BUSY), "other processes used 61 % of this host's CPU"),
        ((LOST, Finding(Reason.SHORTENED)), "a host was lost: b: gone"),
        ((DELAYED,), ""),
        ((UNSUSTAINED, replace(BUSY, share=0.02)), ""),  # too little for a rate,
        ((QUEUE, UNSUSTAINED, replace(BUSY, share=0.02)), "the device accepts 32 at once"),
        ((LATE, replace(BUSY, share=0.02)), "other processes used 61 % of this host's CPU"),  # but not for a p99
        ((UNSUSTAINED, replace(OTHERS, share=0.02)), ""),
        ((UNSUSTAINED, OTHERS), "something else uses the disk: others 9 MiB, ivypy 11 MiB"),
        ((replace(DELAYED, cause="a submit call takes 25 us"),), "a submit call takes 25 us"),
        ((replace(DELAYED, cause="a submit call takes 25 us"), BUSY), "other processes used 61 % of this host's CPU"),
    ],
)
def test_a_cause_explains_a_reason_that_is_more_than_a_note(findings: tuple[Finding, ...], cause: str) -> None:
    assert cause_of(findings, ALL) == cause


@pytest.mark.parametrize(
    ("findings", "cause"),
    [
        ((LATE, BUSY), "do not use the response times: other processes used 61 % of this host's CPU"),
        ((MISSED, LATE, BUSY), "do not use the response times: other processes used 61 % of this host's CPU"),
        ((UNSUSTAINED, LATE, BUSY), "other processes used 61 % of this host's CPU"),
        ((LATE,), "do not use the response times: I/Os were issued late by the test host"),
        ((MISSED, BUSY), ""),
        ((A_LITTLE_LATE,), ""),
        ((ERRORS, LATE), "do not use the response times: I/Os were issued late by the test host"),
        ((FAILED, LATE), "50 % of the I/Os failed (EIO 500)"),
    ],
)
def test_a_cause_of_what_does_not_decide_the_verdict_says_so(findings: tuple[Finding, ...], cause: str) -> None:
    """A step that is for rates and service times: response times do not decide."""
    assert cause_of(findings, USUAL_PURPOSE) == cause


def test_reasons_that_need_an_explanation_can_be_more_than_a_note() -> None:
    for words, explained in EXPLAINS.values():
        assert words.count("{}") == 1
        assert all({*one.severities} != {Severity.NOTE} for one in explained)


@pytest.mark.parametrize(
    ("findings", "like"),
    [
        ((LATE,), Reason.GENERATOR_LATE),
        ((Finding(Reason.EARLIER_BACKLOG), BUSY), Reason.CPU_CONTENTION),  # a longer warmup would not help
        ((Finding(Reason.EARLIER_BACKLOG), replace(BUSY, share=0.02)), Reason.EARLIER_BACKLOG),
        ((Finding(Reason.SEARCH_UNBOUNDED), BUSY), Reason.SEARCH_UNBOUNDED),
        ((A_LITTLE_LATE, BUSY), Reason.GENERATOR_LATE),
        ((LATE, ERRORS), Reason.GENERATOR_LATE),  # a few errors make nothing late
        ((IN_TAIL, ERRORS), Reason.IO_ERRORS),
        ((STARVED, FAILED), Reason.CPU_CONTENTION),
        ((FAILED, STARVED), Reason.IO_ERRORS),
    ],
)
def test_what_to_do_is_what_helps_against_the_cause(findings: tuple[Finding, ...], like: Reason) -> None:
    assert remedy_of(findings[0], findings) == like.remedy


def test_extents_and_blocks_that_were_never_written_have_one_remedy() -> None:
    """So that a step's line names them once."""
    assert Reason.UNWRITTEN_EXTENTS.remedy == Reason.UNWRITTEN_BLOCKS.remedy


def test_a_remedy_for_quick_names_its_options_and_no_key_of_a_plan_that_it_has() -> None:
    options = {name for option in quick.params for name in option.opts}
    keys = {re.sub(r"^--", "", name).replace("-", "_") for name in options} | {"maxtags", "iops", "measure", "warmup"}
    for reason in Reason:
        remedy = in_options(reason.remedy)
        named = set(re.findall(r"--[a-z0-9-]+", remedy))
        assert named <= options, remedy
        assert not keys & set(re.findall(r"`(\w+)`", remedy)), remedy
    late = in_options(Reason.CPU_CONTENTION.remedy)
    assert late == "Stop what else runs on the host, or get the host more CPU."
