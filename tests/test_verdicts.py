"""The table of reasons: one name each, with severities and a scope."""

from dataclasses import replace
from itertools import pairwise, takewhile

import pytest

from ivypy.master.exit_codes import ExitCode, code_of
from ivypy.master.verdicts import (
    ALL,
    STEP,
    USUAL_PURPOSE,
    Finding,
    Reason,
    Scope,
    Severity,
    Verdict,
    by_weight,
    counting_for,
    speaking,
    verdict_of,
)


def test_a_finding_prints_its_severity() -> None:
    assert (
        str(Finding(Reason.GENERATOR_LATE, "12% of the mean", Severity.NOTE))
        == "generator_late[note] (12% of the mean)"
    )
    assert str(Finding(Reason.NO_SAMPLES)) == "no_samples[invalid]"


def test_a_finding_has_a_severity_of_its_reason() -> None:
    for reason in Reason:
        several = len(reason.severities) > 1
        for chosen in (None, *Severity):
            if chosen in reason.severities if several else chosen is None:
                assert Finding(reason, "", chosen).severity in reason.severities
            else:
                with pytest.raises(ValueError, match=reason.word):
                    Finding(reason, "", chosen)


def test_no_two_reasons_have_names_a_suffix_apart() -> None:
    words = sorted(reason.word for reason in Reason)
    for one, next_one in pairwise(words):
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, next_one, strict=False)))
        assert shared < 0.8 * len(one), f"{one} and {next_one}"


def test_every_reason_has_a_scope_and_severities_in_order() -> None:
    order = [*Severity]
    for reason in Reason:
        assert len({*reason.scope}) == len(reason.scope)
        assert (Severity.FAILED in reason.severities) is (reason.scope == STEP), "a target missed discredits no figure"
        assert [*reason.severities] == sorted({*reason.severities}, key=order.index)


NOTED = Finding(Reason.STEADY_LOST, "", Severity.NOTE)
LOST = Finding(Reason.STEADY_LOST, "", Severity.INVALID)
PARTIAL = Finding(Reason.HOST_LOST)
INVALID = Finding(Reason.NO_SAMPLES)
UNSUSTAINED = Finding(Reason.LOAD_NOT_SUSTAINED)
MISSED = Finding(Reason.SLO_MISSED, "", Severity.FAILED)
BLANK = Finding(Reason.SLO_MISSED, "", Severity.INVALID)
DELAYED = Finding(Reason.REAP_DELAY, "60% of the p99", Severity.INVALID)
RATE_MISSED = Finding(Reason.SLO_MISSED, "overall_iops at least 1000: 3 of all=all", Severity.FAILED, about=Scope.RATE)
TAIL_MISSED = replace(RATE_MISSED, about=Scope.SERVICE)
NEVER_MET = Finding(Reason.SEARCH_NEVER_MET)
UNBOUNDED = Finding(Reason.SEARCH_UNBOUNDED)


@pytest.mark.parametrize(
    ("findings", "verdict", "code"),
    [
        ((), Verdict.VALID, ExitCode.OK),
        ((NOTED,), Verdict.VALID, ExitCode.OK),
        ((NOTED, PARTIAL), Verdict.PARTIAL, ExitCode.PARTIAL),
        ((MISSED,), Verdict.FAILED, ExitCode.SLO_MISSED),
        ((PARTIAL, MISSED), Verdict.FAILED, ExitCode.SLO_MISSED),
        ((NEVER_MET,), Verdict.FAILED, ExitCode.NOT_REACHED),
        ((NEVER_MET, MISSED), Verdict.FAILED, ExitCode.SLO_MISSED),
        ((PARTIAL, INVALID), Verdict.INVALID, ExitCode.INVALID),
        ((LOST,), Verdict.INVALID, ExitCode.NOT_REACHED),
        ((UNBOUNDED, PARTIAL, NOTED), Verdict.INVALID, ExitCode.NOT_REACHED),
        ((UNBOUNDED, MISSED), Verdict.INVALID, ExitCode.NOT_REACHED),
        ((LOST, INVALID), Verdict.INVALID, ExitCode.INVALID),
        ((MISSED, INVALID), Verdict.INVALID, ExitCode.INVALID),
        ((MISSED, UNSUSTAINED), Verdict.INVALID, ExitCode.INVALID),
        ((BLANK,), Verdict.INVALID, ExitCode.INVALID),
        ((RATE_MISSED, DELAYED), Verdict.INVALID, ExitCode.SLO_MISSED),  # which speaks against latencies alone
        ((RATE_MISSED, DELAYED, INVALID), Verdict.INVALID, ExitCode.INVALID),
        ((TAIL_MISSED, DELAYED), Verdict.INVALID, ExitCode.INVALID),
        ((RATE_MISSED, BLANK), Verdict.INVALID, ExitCode.INVALID),
        ((replace(RATE_MISSED, chosen=Severity.INVALID), DELAYED), Verdict.INVALID, ExitCode.INVALID),
    ],
)
def test_the_worst_severity_counts(findings: tuple[Finding, ...], verdict: Verdict, code: ExitCode) -> None:
    assert (verdict_of(findings), code_of([findings])) == (verdict, code)


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([], ExitCode.OK),
        ([(), (NOTED,)], ExitCode.OK),
        ([(PARTIAL,), ()], ExitCode.PARTIAL),
        ([(INVALID,), (PARTIAL,)], ExitCode.INVALID),
        ([(INVALID,), (NEVER_MET,)], ExitCode.NOT_REACHED),
        ([(LOST,), (MISSED,), (INVALID,)], ExitCode.SLO_MISSED),
        ([(MISSED, INVALID), (PARTIAL,)], ExitCode.INVALID),
    ],
)
def test_of_several_steps_the_first_code_of_an_order_counts(steps: list[tuple[Finding, ...]], code: ExitCode) -> None:
    assert code_of(steps) is code


def test_no_run_meets_every_threshold_but_one_that_exits_with_0() -> None:
    for reason in Reason:
        for severity in set(reason.severities) - {Severity.NOTE}:
            found = Finding(reason, "", severity if len(reason.severities) > 1 else None)
            assert code_of([(found,)]) is not ExitCode.OK, reason


LATE = Finding(Reason.GENERATOR_LATE, "", Severity.INVALID)
DELAYED = Finding(Reason.REAP_DELAY, "", Severity.INVALID)
DISCARDED = Finding(Reason.EXPIRED_DUE, "", Severity.INVALID)
HUNG = Finding(Reason.HUNG_IOS)


@pytest.mark.parametrize(
    ("findings", "rate", "service", "response", "usual"),
    [
        ((), Verdict.VALID, Verdict.VALID, Verdict.VALID, Verdict.VALID),
        ((LATE,), Verdict.VALID, Verdict.VALID, Verdict.INVALID, Verdict.VALID),
        ((DELAYED,), Verdict.VALID, Verdict.INVALID, Verdict.INVALID, Verdict.INVALID),
        ((DISCARDED,), Verdict.INVALID, Verdict.VALID, Verdict.INVALID, Verdict.INVALID),
        ((LATE, HUNG), Verdict.VALID, Verdict.PARTIAL, Verdict.INVALID, Verdict.PARTIAL),
        ((PARTIAL, LATE), Verdict.PARTIAL, Verdict.PARTIAL, Verdict.INVALID, Verdict.PARTIAL),
        ((INVALID,), Verdict.INVALID, Verdict.INVALID, Verdict.INVALID, Verdict.INVALID),
        ((MISSED,), Verdict.VALID, Verdict.VALID, Verdict.VALID, Verdict.FAILED),
        ((BLANK, PARTIAL), Verdict.PARTIAL, Verdict.PARTIAL, Verdict.PARTIAL, Verdict.INVALID),
    ],
)
def test_a_reason_counts_for_the_figures_of_its_scope(
    findings: tuple[Finding, ...], rate: Verdict, service: Verdict, response: Verdict, usual: Verdict
) -> None:
    of_scopes = [verdict_of(speaking(findings, {scope})) for scope in (Scope.RATE, Scope.SERVICE, Scope.RESPONSE)]
    assert of_scopes == [rate, service, response]
    assert verdict_of(counting_for(findings, USUAL_PURPOSE)) is usual


def test_reasons_are_listed_by_weight() -> None:
    found = [NOTED, PARTIAL, MISSED, LATE, INVALID, UNSUSTAINED]
    assert by_weight(found, ALL) == (INVALID, UNSUSTAINED, LATE, MISSED, PARTIAL, NOTED)
    assert by_weight(found, USUAL_PURPOSE) == (INVALID, UNSUSTAINED, MISSED, PARTIAL, LATE, NOTED), "what decides first"


def test_every_reason_has_a_remedy() -> None:
    for reason in Reason:
        assert reason.remedy.endswith(".") and reason.remedy != reason.sentence, reason


@pytest.mark.parametrize("other", [one for one in Reason if Severity.INVALID in one.severities])
def test_what_was_never_written_weighs_more_than_what_the_host_did(other: Reason) -> None:
    """No medium was read: no other load, and no idle host, would make it a measurement of the storage."""
    chosen = Severity.INVALID if len(other.severities) > 1 else None
    sparse = Finding(Reason.UNWRITTEN_EXTENTS)
    assert by_weight((Finding(other, chosen=chosen), sparse), ALL)[0] == sparse
