"""What the schedules of each tenant come to: the sums that are kept, and what they must be."""

from __future__ import annotations

from functions.domain.schedules.fire_rates import fires_an_hour
from functions.domain.schedules.load import Load
from functions.domain.schedules.state import ScheduleState, Status
from functions.sweeper.heal import Healer
from testkit.world.host import Host
from testkit.world.process import Conditions
from testkit.world.store import WatchedSchedules


class Sums(Host):
    """The sums of schedules."""

    schedules: WatchedSchedules

    def check_sums(self) -> None:
        """What each tenant's schedules come to is what their definitions say, once the sweep has looked at them."""
        healer = self.build(Healer, self.process("recount", Conditions()))
        after, is_over = None, False
        while not is_over:
            page = self.schedules.scan(after=after, limit=100)
            for _ in healer.recount(page):
                pass
            after, is_over = page.after, page.after is None
        self.expect_sums_of_shares()
        expected = dict.fromkeys(self._states_by_tenant(), Load())
        for tenant, states in self._states_by_tenant().items():
            for key, state in states.items():
                stored, _ = self.schedules.get(key)
                if stored is None:
                    continue
                fires = fires_an_hour(stored.schedule)
                is_fired = state.status is Status.ACTIVE and state.link is not None
                expected[tenant] += Load(1, fires if is_fired else 0)
        found = {tenant: self.schedules.load(tenant) for tenant in expected}
        self.promises.expect(found == expected, f"the sums of schedules are {found}, not {expected}")

    def expect_sums_of_shares(self) -> None:
        """Whoever dies, and whenever: what is in a sum is what its schedules say that they count for."""
        for tenant, states in self._states_by_tenant().items():
            shares = sum((Load.of(state.share) for state in states.values()), Load())
            load = self.schedules.load(tenant)
            self.promises.expect(
                load == shares, f"the sum of the schedules of {tenant} is {load}, but of shares {shares}"
            )

    def _states_by_tenant(self) -> dict[str, dict[str, ScheduleState]]:
        by_tenant: dict[str, dict[str, ScheduleState]] = {}
        for key, state in self.schedules.states(list(self.promises.schedules.truth.versions)).items():
            by_tenant.setdefault(key.partition("#")[0], {})[key] = state
        return by_tenant
