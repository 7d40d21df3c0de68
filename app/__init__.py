"""Two ways into Tracejury: a browser and a command."""
