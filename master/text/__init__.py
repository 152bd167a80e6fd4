"""Text that people write and read: quantities with units, metric amounts, "did you mean"."""
