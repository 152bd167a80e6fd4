"""Statistics of subinterval values: confidence, autocorrelation, trend."""
