"""Beyond memory and beyond one machine; `python -m benchmarks.scale` measures all of it."""
