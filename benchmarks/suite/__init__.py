"""Classifiers over many data sets; `python -m benchmarks.suite` measures and reports."""
