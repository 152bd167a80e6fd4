"""Checks what one part of a plan demands of another."""
