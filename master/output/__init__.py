"""The run folder: CSV rows, histograms, events; written by one thread."""
