"""What the commands of `tracejury` take and print, by subject; the work is in `app.commands`, imported where used."""
