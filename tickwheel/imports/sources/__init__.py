"""A module for each program whose schedules are read."""
