"""What pytest finds where Tickwheel is installed: the fixture `scheduler`, which costs nothing where no test asks for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tickwheel.testing import Scheduler


@pytest.fixture
def scheduler() -> Iterator["Scheduler"]:
    """A scheduler in memory, of this test alone, at the present time."""
    from tickwheel.testing import Scheduler

    with Scheduler() as made:
        yield made
