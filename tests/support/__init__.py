"""What tests share: real devices, sshd, simulated hosts and plants, builders of plans and results."""
