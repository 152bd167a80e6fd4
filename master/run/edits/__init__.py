"""Changes by people and control while a run goes on: parsed, checked as a whole, sent, and in force."""
