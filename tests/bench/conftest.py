"""Make the benchmarks importable: they lie beside the tests, in no installed package."""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]

if (_ROOT / "benchmarks").is_dir():
    sys.path.insert(0, str(_ROOT))
else:  # a source distribution has none
    collect_ignore_glob = ["test_*.py", "*/test_*.py"]
