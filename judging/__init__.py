"""What people and judges say of a trace, and how far they agree."""
