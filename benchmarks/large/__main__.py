"""Run the benchmarks of many rows, all of them or those named.

python -m benchmarks.large            all
python -m benchmarks.large growth     learning curves on planted rows
python -m benchmarks.large sets       the data sets of more than 10,000 rows, all of them
"""

from benchmarks.package import run_package

if __name__ == "__main__":
    raise SystemExit(run_package("benchmarks.large", ["growth", "sets"], __doc__))
