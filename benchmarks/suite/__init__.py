"""Classifiers over many data sets; `python -m benchmarks.suite` measures and reports."""

import os

# Threads of OpenMP that wait for each other shall sleep, not spin: on a machine that others use
# too, spinning makes boosting take minutes for seconds. Must be set before the libraries load.
