"""Decisions taken at barrier 1: pure functions of numbers and time handed in.

control_spec.py is what a plan asks for of a step; control_state.py is the seam to the run, and says what a load, a
measurement and their states are.

Each file has what a plan asks for beside the state that it makes. A measurement state says when a measurement is
complete (fixed, measure, steady). Feedback control moves the load beneath one (feedback, with steer, pid, pid_loop
and autopid). Others set loads of their own (staircase; profile; search, with probe and bracket). slo puts thresholds
over any of them. Their input is observation.py, made from merged subintervals by observe.py; their answer is
decision.py. offline.py applies criteria to finished data. The statistics are in master/stats.
"""
