"""What controller and test host say to each other. Standard library only; does no I/O."""
