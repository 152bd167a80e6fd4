"""What the slave's tests share: block devices of their own, and a client that commands a real slave."""
