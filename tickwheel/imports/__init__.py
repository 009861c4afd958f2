"""Schedules of other programs: what is read of their files, and what becomes of it here. Pure, but for the reading of files."""
