"""The experiments of the paper; `python -m mbkl_paper.experiments` measures and reports."""

import os

# As in the suite: threads of OpenMP that wait shall sleep, on a machine that others use too.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
