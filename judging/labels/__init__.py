"""What people store about a trace."""
