"""The Runs page: what was asked and is being asked of judges, and the form that starts more."""
