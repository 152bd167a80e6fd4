"""Decisions taken at barrier 1: pure functions of numbers and time handed in.

decide.py is the seam. Behind it stand judges, which say when a measurement is good (fixed, measure, steady), what
steers the load beneath a judge (steer: pid, autopid), and states that set
loads of their own (staircase; search, by the answers of probe and the rules of bracket). slo puts thresholds over any
of them. build.py makes them from a step. What they look at is observation.py and focus.py, made from merged
subintervals by observe.py; what they answer is decision.py. The statistics are estimate, criteria, and those of the
room stats; offline.py serves data at rest.
"""
