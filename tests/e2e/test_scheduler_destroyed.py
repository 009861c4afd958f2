"""The scheduler stack was destroyed and deployed again: what was in the tables is still there, and goes on."""

import pytest

from testkit.deployment import Deployment
from tests.e2e.returning import Return, Rollback

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(600)]


def test_to_destroy_a_scheduler_is_refused_while_jobs_are_in_its_queues(returned: Return) -> None:
    assert returned.refused.returncode == 1
    assert "messages wait in the queues, and would be deleted with them: " in returned.refused.stderr


def test_without_a_scheduler_there_are_no_queues_and_every_row_is_there(returned: Return, rollback: Rollback) -> None:
    assert returned.queues == []
    assert returned.rows == len(rollback.far)


def test_the_scanners_of_the_new_scheduler_are_rewound(returned: Return, deployment: Deployment) -> None:
    assert sorted(returned.rewound["rewound"] + returned.rewound["left"]) == [0, 1]
    assert returned.rewound["rewound"]
    assert deployment.events("Scanner", "rewound")
