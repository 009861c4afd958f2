"""Tickwheel's client, command line and local cloud."""
