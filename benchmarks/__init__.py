"""Measurements of the project, each with the one command that repeats it."""
