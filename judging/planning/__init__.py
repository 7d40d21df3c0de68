"""Studies planned before they are paid for: how many traces, people and repeats. Pure functions of frames."""
