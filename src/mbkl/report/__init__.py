"""A report on a model: one HTML file that needs nothing else."""

from mbkl.report.writer import write_report

__all__ = ["write_report"]
