"""Pages run as doctests; what Sphinx runs or has made is not imported by pytest."""

collect_ignore = ["conf.py", "pictures", "auto_examples", "api", "_build"]
