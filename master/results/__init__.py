"""Runs read back from their folders: which there are, and what they measured."""
