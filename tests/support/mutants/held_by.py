"""Which tests hold a module: a change of it that does harm makes one of them fail."""

from typing import Final

HELD_BY: Final[dict[str, tuple[str, ...]]] = {
    "protocol/consent_check.py": ("tests/protocol/test_consent_check.py",),
    "master/run/edits/edit_policy.py": ("tests/run/test_edit_policy.py",),
    "master/control/measure.py": ("tests/control/test_measure.py",),
    "master/control/steady.py": ("tests/control/test_steady.py", "tests/control/test_fio.py"),
    "master/control/search.py": ("tests/control/test_search.py", "tests/control/test_set_aside.py"),
    "master/control/profile.py": ("tests/control/test_profile.py", "tests/plan/test_control.py"),
    "master/run/record/step_reports.py": ("tests/run/test_step_reports.py", "tests/stats/test_one_value.py"),
    "master/compare/outcomes.py": ("tests/compare/test_outcomes.py",),
    "master/stats/percentiles.py": ("tests/stats/test_percentiles.py", "tests/rollup/test_figures.py"),
    "master/connectors/host_readings.py": ("tests/connectors/test_host_readings.py",),
    "slave/host_connector/boundary_reader.py": ("tests/slave/test_boundary_reader.py",),
    "master/stats/confidence.py": ("tests/stats/test_confidence.py", "tests/stats/test_correlation.py"),
    "master/rollup/overload.py": ("tests/rollup/test_overload.py",),
    "master/rollup/validity.py": ("tests/rollup/test_validity.py", "tests/rollup/test_presence.py"),
    "master/rollup/host_cpu.py": ("tests/rollup/test_host_cpu.py",),
    "master/rollup/io_checks.py": ("tests/rollup/test_validity.py",),
    "master/hosts/clock_offset.py": ("tests/hosts/test_clock_offset.py",),
    "slave/gate/write_gate.py": ("tests/slave/test_write_gate.py", "tests/slave/test_write_gate_sysfs.py"),
    "slave/devices/extents.py": ("tests/slave/test_extents.py",),
    "slave/engine/stats/histogram.c": ("tests/engine/test_numbers.py", "tests/engine/test_steps.py"),
    "slave/engine/load/pacer.c": ("tests/engine/test_pacing.py", "tests/engine/test_core.py"),
    "slave/engine/load/permutation.c": ("tests/engine/test_pacing.py",),
    "slave/engine/luns/volume.c": ("tests/engine/test_volume.py", "tests/engine/test_core.py"),
    "slave/engine/thread/submit.c": ("tests/engine/test_core.py", "tests/engine/test_steps.py"),
    "master/logs/timeline/resample.py": ("tests/logs/test_resample.py",),
}  # fmt: skip
