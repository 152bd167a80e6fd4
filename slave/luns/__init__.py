"""LUNs found, identified, made, opened and given back."""
