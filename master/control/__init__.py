"""Decisions taken at barrier 1: pure functions of numbers and time handed in.

control_spec.py is what a plan asks for, check.py what is wrong with it, build.py the way from there to a state;
control_state.py is the seam to the run.

A measurement state says when a measurement is complete (fixed, measure, steady). Feedback
control moves the load beneath one (steer: pid with pid_loop, autopid). Others set loads of their own (staircase;
search, with probe and bracket). slo puts thresholds over any of them. Their input is observation.py, made from merged
subintervals by observe.py; their answer is decision.py. offline.py applies criteria to finished data. The statistics
are in master/stats.
"""
