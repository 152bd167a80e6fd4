"""Shows a person what happens while a test runs."""
