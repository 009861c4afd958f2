"""`cdk diff` of what is deployed, from an unchanged checkout and from another."""

from dataclasses import replace

import pytest

from testkit.deployment import Deployment
from tests.e2e.releases import Releases
from tickwheel.errors import DeployFailed

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def test_an_unchanged_checkout_has_no_difference_to_what_is_deployed_from_it(deployment: Deployment) -> None:
    lines: list[str] = []

    deployment.stack.diff(progress=lines.append)

    assert [line for line in lines if "Number of stacks with differences: 0" in line]


def test_another_release_has(deployment: Deployment, releases: Releases) -> None:
    if releases.why_not is not None:
        pytest.skip(releases.why_not)

    with pytest.raises(DeployFailed, match="`cdk diff` failed with code 1"):
        replace(deployment.stack, home=releases.previous).diff()
