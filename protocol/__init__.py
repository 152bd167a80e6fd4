"""The messages between the controller and a test host. Standard library only; does no I/O."""
