"""`python -m tickwheel.demo`: the whole scheduler on this machine, fed with real jobs and schedules, and judged."""
