"""The runner of `make smoke`, its plan, and that a stage that is broken is seen as broken."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from infra.stage import Stage
from smoke import __main__ as command
from smoke import front_door
from smoke.__main__ import announcement, chosen
from smoke.catalogue import CHECKS
from smoke.check import Check, Outcome, Phase, Result
from smoke.faults import NotPossible, Wrong
from smoke.ground import Ground
from smoke.run import CLEAN_UP, Run, longest, run_all
from smoke.spending import most_usd
from tests.api_server import Answer, ApiServer, Request, job_json
from tests.pages import read_page

AWS = {
    "endpoint_url": "http://127.0.0.1:9",
    "region_name": "eu-west-1",
    "aws_access_key_id": "AKIDEXAMPLE",
    "aws_secret_access_key": "secret",
}
DEV = Stage.named("dev")


def a_check(run: Callable[[Ground], str], **fields: object) -> Check:
    check = Check(run, name="it", phase=Phase.JOBS)
    return replace(check, **fields)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A stage that takes whatever it is sent, from anybody."""
    with ApiServer(otherwise=lambda _: Answer(202, job_json())) as server:
        yield server


@pytest.fixture
def ground(server: ApiServer) -> Iterator[Ground]:
    ground = Ground(DEV, AWS, endpoint=server.url)
    yield ground
    ground.close()


def ran(ground: Ground, *checks: Check) -> Run:
    return run_all(ground, checks, lambda _: None)


def only(run: Run) -> Result:
    (result,) = [result for result in run.results if result.of != CLEAN_UP]
    return result


def test_a_check_that_returns_has_passed_with_the_value_that_it_saw(ground: Ground) -> None:
    run = ran(ground, a_check(lambda _: "8 of 8"))

    assert (only(run).outcome, only(run).seen, run.is_passed) == (Outcome.PASSED, "8 of 8", True)


def test_a_check_that_is_wrong_has_failed_with_what_was_seen_and_expected(ground: Ground) -> None:
    def wrong(_: Ground) -> str:
        raise Wrong("7 of 8", expected="8")

    run = ran(ground, a_check(wrong))

    assert not run.is_passed
    assert "failed: saw 7 of 8; expected: 8" in str(only(run))


def test_a_check_that_breaks_has_failed_with_what_broke_it(ground: Ground) -> None:
    def broken(_: Ground) -> str:
        raise LookupError("no such queue")

    run = ran(ground, a_check(broken))

    assert (only(run).outcome, only(run).seen) == (Outcome.FAILED, "LookupError: no such queue")
    assert not run.is_passed


def test_what_is_not_possible_here_is_neither_passed_nor_failed_and_has_its_reason(ground: Ground) -> None:
    def impossible(_: Ground) -> str:
        raise NotPossible("this stage allows no functions")

    run = ran(ground, a_check(impossible))

    assert (only(run).outcome, only(run).seen) == (Outcome.NOT_POSSIBLE, "this stage allows no functions")
    assert run.is_passed


def test_what_needs_aws_is_not_run_on_a_local_cloud(server: ApiServer) -> None:
    ground = Ground(Stage.named("local"), AWS, endpoint=server.url)

    run = ran(ground, a_check(lambda _: pytest.fail("it was run"), needs_aws="nothing is billed"))

    ground.close()
    assert (only(run).outcome, only(run).seen) == (Outcome.NOT_POSSIBLE, "nothing is billed")


def test_checks_of_a_phase_run_side_by_side_and_the_next_phase_after_them(ground: Ground) -> None:
    order: list[str] = []

    def record(name: str, *, until: str = "") -> Callable[[Ground], str]:
        def run(_: Ground) -> str:
            order.append(name)
            while until and until not in order:  # it would never end if it were alone
                time.sleep(0.01)
            return name

        return run

    run = ran(
        ground,
        a_check(record("later"), name="later", phase=Phase.LOAD),
        a_check(record("first", until="second"), name="first"),
        a_check(record("second"), name="second"),
    )

    assert run.is_passed
    assert order[-1] == "later"


def test_a_check_without_an_end_has_failed_and_the_others_are_told(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smoke.run._GRACE", 0.0)

    released = threading.Event()

    def hang(_: Ground) -> str:
        released.wait(60)
        return "too late"

    run = ran(ground, a_check(hang, name="hangs", seconds=0.2), a_check(lambda _: "seen", name="ends", seconds=0.1))

    released.set()
    results = {result.of: result for result in run.results}
    assert (results["hangs"].outcome, results["hangs"].seen) == (Outcome.FAILED, "no end")
    assert results["ends"].outcome is Outcome.PASSED


def test_a_run_that_is_interrupted_has_failed_and_what_it_made_is_removed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    ground.at_the_end("a queue", lambda: closed.append("queue"))

    def interrupt(*_: object) -> list[Result]:
        raise KeyboardInterrupt

    monkeypatch.setattr("smoke.run._side_by_side", interrupt)

    run = ran(ground, a_check(lambda _: "seen"))

    assert closed == ["queue"]
    assert [(result.of, result.outcome) for result in run.results] == [
        ("interrupted", Outcome.FAILED),
        (CLEAN_UP, Outcome.PASSED),
    ]


def test_everything_is_removed_even_if_something_cannot_be(ground: Ground, server: ApiServer) -> None:
    closed: list[str] = []

    def make(ground: Ground) -> str:
        ground.tenant("one")
        ground.at_the_end("the first", lambda: closed.append("first"))
        ground.at_the_end("the second", lambda: 1 // 0)
        return "made"

    run = ran(ground, a_check(make))

    assert closed == ["first"]
    cleaning = next(result for result in run.results if result.of == CLEAN_UP)
    assert cleaning.outcome is Outcome.FAILED
    assert "the second: integer division" in cleaning.seen
    deleted = [request.path for request in server.requests if request.method == "DELETE"]
    assert deleted == [f"/v1/tenants/smoke-{ground.run}-one?confirm=smoke-{ground.run}-one&ledger=ttl"]


def test_an_unsigned_call_that_is_answered_is_seen(ground: Ground, server: ApiServer) -> None:
    with pytest.raises(Wrong, match="GET /v1/health: 202"):
        front_door.unsigned(ground)

    assert all("authorization" not in request.headers for request in server.requests)


def test_unsigned_calls_that_are_all_refused_pass() -> None:
    with ApiServer(otherwise=lambda _: Answer(403, {"message": "Forbidden"})) as server:
        ground = Ground(DEV, AWS, endpoint=server.url)
        seen = front_door.unsigned(ground)
        ground.close()

    assert seen == "403 from 54 routes"


def _as_a_gateway_without(path: str) -> Callable[[Request], Answer]:
    problem = (("Content-Type", "application/problem+json"),)

    def answer(request: Request) -> Answer:
        if request.path.startswith(path):
            return Answer(404, {"message": "Not Found"}, (("Content-Type", "application/json"),))
        return Answer(404, {"code": "not_a_job_id"}, problem)

    return answer


def test_a_route_that_the_gateway_does_not_know_is_seen() -> None:
    with ApiServer(otherwise=_as_a_gateway_without("/v1/breakers")) as server:
        ground = Ground(DEV, AWS, endpoint=server.url)
        with pytest.raises(Wrong) as wrong:
            front_door.routes(ground)
        ground.close()

    assert wrong.value.seen.startswith('GET /v1/breakers: 404 {"message": "Not Found"}')


def test_no_request_about_routes_could_change_anything(ground: Ground, server: ApiServer) -> None:
    with pytest.raises(Wrong):  # a stage that takes them all
        front_door.unsigned(ground)

    assert {request.body for request in server.requests if request.method not in ("GET", "DELETE")} == {
        front_door.NO_JSON
    }


def test_the_longest_duration_adds_phases_and_takes_the_longest_of_each() -> None:
    checks = [
        a_check(lambda _: "", seconds=100),
        a_check(lambda _: "", seconds=40),
        a_check(lambda _: "", seconds=10, phase=Phase.LOAD, is_far=True),
        *[a_check(lambda _: "", seconds=1_000, phase=Phase.LONG)] * 2,
    ]

    far = (DEV.wheel.guard + 2 * DEV.wheel.bucket).total_seconds()
    grace = 30
    assert longest(checks, DEV) == 100 + grace + 10 + far + grace + 2 * (1_000 + grace)


def test_the_bound_of_the_bill_grows_with_jobs_workers_and_hours() -> None:
    check = a_check(lambda _: "", jobs=1_000)
    usd = most_usd([check], DEV, seconds=600)

    assert 0 < usd < most_usd([replace(check, jobs=2_000)], DEV, seconds=600) < 1
    assert usd < most_usd([replace(check, worker_seconds=10_000)], DEV, seconds=600)
    assert usd < most_usd([check], DEV, seconds=7_200)
    assert most_usd([replace(check, usd=3)], DEV, seconds=600) == pytest.approx(usd + 3)


def test_a_run_says_how_long_and_how_dear_it_may_be_before_it_begins() -> None:
    said = announcement(chosen(), DEV)

    assert f"{len(chosen())} checks of stage dev: " in said
    assert " minutes at most, " in said
    assert " USD at most" in said


def test_the_page_says_how_long_and_how_dear_a_run_on_dev_may_be() -> None:
    seconds = longest(chosen(), DEV)

    assert f"{seconds / 60:.0f} minutes and {most_usd(chosen(), DEV, seconds=seconds):.2f} USD on `dev`" in read_page(
        "smoke.md"
    )


def test_long_checks_run_only_where_they_are_asked_for() -> None:
    assert not any(check.is_long for check in chosen())
    assert {check.name for check in chosen(long=True)} == {check.name for check in CHECKS}
    assert [check.name for check in chosen(only=["redeploy"])] == ["redeploy"]
    assert all(check.is_quick for check in chosen(quick=True))


def test_an_unknown_check_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        command.main(["--only", "nope"])

    assert exit_.value.code == 2
    assert "there is no check 'nope': choose from account, " in capsys.readouterr().err


def test_a_stage_that_is_not_there_is_told_with_the_command_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)

    assert command.main(["--stage", "dev", "--only", "clocks"]) == 1

    assert "Is it deployed here? `make deploy STAGE=dev`" in capsys.readouterr().err


def test_names_of_checks_are_unique_and_each_is_on_the_page() -> None:
    names = [check.name for check in CHECKS]

    assert len(set(names)) == len(names)
    page = read_page("smoke.md")
    for check in CHECKS:
        assert f"| {check.name} |" in page


def test_a_report_has_a_line_per_check_with_the_value_seen(ground: Ground, tmp_path: Path) -> None:
    report = tmp_path / "dev.json"
    report.write_text(json.dumps(ran(ground, a_check(lambda _: "8 of 8")).as_json()))

    read = json.loads(report.read_text())
    assert read["passed"] is True
    (check, _) = read["checks"]
    assert (check["of"], check["outcome"], check["seen"]) == ("it", "passed", "8 of 8")
