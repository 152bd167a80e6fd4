"""What a person sees while a test runs."""
