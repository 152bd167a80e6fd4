"""Text that people write and read: quantities with units, metric amounts, wrapping, "did you mean"."""
