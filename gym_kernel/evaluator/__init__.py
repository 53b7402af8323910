"""Everything between source text and verdict: host, judge, worker, isolation, numerics, timing, roofline."""
