from collections import Counter

from soak.load import KINDS, SHAKY, STEADY
from verification.sink import Manner

CALLS = {Manner.FINE: (1, 0), Manner.FLAKY: (2, 1), Manner.BROKEN: (3, 3)}
"""How often a job is called, and how often in vain."""


def test_what_fails_at_times_leaves_its_destination_working_for_the_most_part() -> None:
    manners = Counter(manner for tenant, manner in KINDS if tenant == SHAKY)
    calls, failures = (sum(CALLS[manner][part] * count for manner, count in manners.items()) for part in (0, 1))
    assert failures / calls <= 0.2


def test_only_who_is_steady_is_measured() -> None:
    assert {manner for tenant, manner in KINDS if tenant in STEADY} == {Manner.FINE}
    assert len(KINDS) == 100
