"""Speed and memory of mbkl; `python -m benchmarks.speed` measures all of it."""
