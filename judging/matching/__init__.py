"""Human errors and judge findings that describe the same thing."""
