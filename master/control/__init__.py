"""Decisions taken at barrier 1: pure functions of numbers and time handed in.

decide.py is the seam. Behind it stand judges, which say when a measurement is good (fixed, measure, steady), what
steers the load beneath a judge (steer: pid, autopid; retarget.py changes its target in mid-run), and states that set
loads of their own (staircase; find, by the answers of probe and the rules of search). slo puts thresholds over any of
them. planned.py makes them from a step. What they look at is interval.py and focus.py, made from merged subintervals by
samples.py; what they answer is decision.py. The statistics are estimate, correlation, trend and criteria, and rollup's
own; finished.py serves data at rest.
"""
