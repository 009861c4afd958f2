"""What the stage `scale` has for its load, beside what every stage has."""

from __future__ import annotations

from infra.throughput import Pollers, WarmThroughput

# `normal` alone can bring 100,000 messages a second, and all of them begin with 32,000.
POLLERS = (
    Pollers(minimum=50, maximum=200),
    Pollers(minimum=50, maximum=300),
    Pollers(minimum=200, maximum=1_000),
    Pollers(minimum=20, maximum=200),
)

# docs/capacity.md counts the partitions.
WARM_THROUGHPUT = {
    "timers": WarmThroughput(reads=40_000, writes=256_000),
    "ledger": WarmThroughput(reads=40_000, writes=300_000),
    "schedules": WarmThroughput(reads=40_000, writes=20_000),
    "schedule_state": WarmThroughput(reads=40_000, writes=80_000),
    "tenants": WarmThroughput(reads=40_000, writes=40_000),
}
