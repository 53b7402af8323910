"""Speed, measured side by side in one run; run as ``python -m benchmarks.NAME``."""
