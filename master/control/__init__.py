"""Decisions taken at barrier 1: pure functions of numbers and time handed in (the seam is decide.py)."""
