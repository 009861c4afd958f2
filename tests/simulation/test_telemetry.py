"""What is reported of jobs beside the jobs: counted, and never in their way."""

from simulation.limits import Limits
from simulation.run import simulate
from simulation.stage import SimulatedStage
from simulation.telemetry import Stream
from tests.simulation.small import a_scenario


def test_a_stream_takes_its_quota_of_the_whole_stage() -> None:
    stream = Stream(Limits(), share=0.01)

    taken = sum(stream.take([10_000], at=1.0) for _ in range(1_000))

    # A megabyte each for the stage: 5 MiB a second, over five seconds.
    assert taken == int(5 * 5 * 2**20 / 1e6)
    assert stream.steps == 2 * taken


def test_lines_that_the_stream_refuses_go_to_the_log_and_the_jobs_run() -> None:
    def full(stage: SimulatedStage) -> None:
        stage.stream.bytes.quota = 0

    result = simulate(a_scenario(happens=full), seed=1)

    assert result.is_held
    assert result.counts["audit_lines_lost"] > 1_000
    assert result.cost["firehose_5_kb"] == 0


def test_use_audit_pulse_and_log_are_paid() -> None:
    result = simulate(a_scenario(rate=40.0), seed=1)

    assert result.counts.get("audit_lines_lost", 0) == 0
    assert result.cost["firehose_5_kb"] > 0
    # 618 bytes of each execution, and more of those that were promoted.
    assert 0.5 * 618e-3 < result.cost["log_gb"] < 0.5 * 700e-3
    assert result.cost["http_api_request"] == 0
