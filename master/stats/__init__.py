"""Statistics: histograms and their percentiles, confidence, autocorrelation, trend, estimates over windows."""
