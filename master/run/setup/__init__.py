"""Before the first step: hosts connected, LUNs discovered and placed, consent, limits, settings sent."""
