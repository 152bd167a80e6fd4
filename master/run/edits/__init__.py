"""What people and control change while a run goes on: parsed, checked as a whole, sent, and in force."""
