"""Tests that were written for other tools, as plans: reader -> neutral description -> text of a plan."""
