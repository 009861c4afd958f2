"""The bucket audit beside a load: it reads what has been promoted once more, and finds what was lost."""

from collections.abc import Callable, Sequence
from typing import Any

from simulation.orders import flow, tenants_of
from simulation.outcome import Result
from simulation.queues import Parcel
from simulation.run import simulate
from simulation.scenario import Work
from simulation.stage import SimulatedStage
from tests.simulation.small import a_scenario


def audited(happens: Callable[[SimulatedStage], None] = lambda _: None, *, sample: float = 1.0) -> Result:
    """240 far jobs of one minute, and the twelve minutes after it."""

    def fill(stage: SimulatedStage) -> Work:
        stage.audits = True
        happens(stage)
        tenants = tenants_of(stage.sample, stage.wheel, each=2).names
        return Work(orders=flow(stage.dice, tenants, start=360.0, end=420.0, rate=lambda _: 4.0, lead=lambda _: 600.0))

    given = {"stage": {"audit_sample": sample}, "window": (360.0, 420.0), "until": 1_140.0, "goals": ()}
    return simulate(a_scenario(fill=fill, **given), seed=1)


def test_what_was_promoted_is_read_once_more_and_nothing_of_it_was_lost() -> None:
    result = audited()

    assert result.facts["audited_a_bucket"] == result.jobs > 150
    assert result.facts["stragglers"] == result.facts["lost"] == 0
    assert result.facts["audit_behind_s"] == 0
    # Half a unit of the ledger for each, a page of each of four shards, and the sweeper's own rows.
    assert result.jobs / 2 < result.facts["audit_reads"] < result.jobs


def test_only_a_share_of_the_shards_is_read() -> None:
    some = audited(sample=0.7)

    assert 0 < some.facts["audited_a_bucket"] < some.jobs
    assert some.facts["stragglers"] == 0


def test_a_job_whose_message_was_lost_is_found_and_runs_all_the_same() -> None:
    def lose(stage: SimulatedStage) -> None:
        for queue in stage.queues.values():

            def send(entries: Sequence[tuple[Parcel, int]], *, at: float, send: Any = queue.send) -> None:
                send(entries[1:] if at < 420 else entries, at=at)

            queue.send = send

    result = audited(lose)

    assert result.facts["stragglers"] > 0
    assert result.facts["lost"] == 0
    assert result.lag.longest > 300  # five minutes after its bucket


def test_an_audit_that_finds_no_drained_queue_waits_and_is_behind() -> None:
    def fill_up(stage: SimulatedStage) -> None:
        stage.is_down = lambda at: 420 < at < 900  # nobody publishes how the stage stands, and nobody audits

    result = audited(fill_up)

    assert result.facts["audit_behind_s"] > 60
    assert result.facts["audited_a_bucket"] == result.jobs
