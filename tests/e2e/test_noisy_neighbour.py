"""One tenant's thousands do not keep another's ten waiting."""

import pytest

from tests.e2e.waiting import Neighbours

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(420)]

MINUTES = 300


def test_a_tenant_with_ten_jobs_is_served_while_the_thousands_of_another_drain(neighbours: Neighbours) -> None:
    quiet = neighbours.quiet.wait(neighbours.quiet_count, within=MINUTES)
    noise = neighbours.noise.wait(neighbours.noise_count, within=MINUTES)

    served_at = max(arrival.at for arrival in quiet)
    behind = [arrival for arrival in noise if arrival.at > served_at]
    # In the order of their rows all two thousand would have come first.
    assert len(behind) > neighbours.noise_count / 2
    for arrivals, count in ((quiet, neighbours.quiet_count), (noise, neighbours.noise_count)):
        assert len({arrival.headers["tickwheel-job-id"] for arrival in arrivals}) == len(arrivals) == count
