"""`python -m smoke --stage dev`: what a deployed stage must do, looked at on its own account; exit code 1 where it does not."""

import argparse
import json
import signal
import sys
from collections.abc import Sequence

from botocore.exceptions import BotoCoreError, ClientError

from infra.stage import Stage
from infra.stage_parts import InvalidStage
from smoke.catalogue import CHECKS
from smoke.check import Check
from smoke.ground import Ground
from smoke.run import longest, run_all
from smoke.spending import most_usd
from tickwheel.errors import TickwheelError
from tickwheel.local.installation import find_home
from tickwheel.local.settings import AwsSettings
from tickwheel.local.state import read_running

FOLDER = "smoke"
"""Of the report: in `.build` of a checkout, elsewhere in the working folder."""


def main(arguments: Sequence[str], *, prog: str = "python -m smoke") -> int:
    """The exit code. prog: what the user has called."""
    parser = argparse.ArgumentParser(
        prog=prog, description="Prove on its own account that a deployed stage does what it promises."
    )
    parser.add_argument(
        "--stage", default="dev", help="in infra/stage.py (dev); local is the cloud of `tickwheel local up`"
    )
    parser.add_argument("--quick", action="store_true", help="only the short list, which takes a minute or two")
    parser.add_argument("--long", action="store_true", help="also what takes long: see --list")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this check, long or not; may be repeated")
    parser.add_argument(
        "--previous", metavar="REVISION", help="what `roll back` deploys in between: the release before"
    )
    parser.add_argument("--list", action="store_true", help="list the checks and what they prove, and run none")
    asked = parser.parse_args(arguments)
    try:
        stage = Stage.named(asked.stage)
        checks = chosen(quick=asked.quick, long=asked.long, only=asked.only or ())
    except (InvalidStage, ValueError) as error:
        parser.error(str(error))
    if asked.list:
        for check in CHECKS:
            print(
                f"{check.name:<26}{'long  ' if check.is_long else 'quick ' if check.is_quick else '      '}{check.proves}"
            )
        return 0
    return _run(stage, checks, previous=asked.previous)


def chosen(*, quick: bool = False, long: bool = False, only: Sequence[str] = ()) -> list[Check]:
    """The checks that somebody asked for. Raises ValueError for a name that there is not."""
    unknown = [name for name in only if name not in {check.name for check in CHECKS}]
    if unknown:
        raise ValueError(f"there is no check {unknown[0]!r}: choose from {', '.join(check.name for check in CHECKS)}")
    if only:
        return [check for check in CHECKS if check.name in only]
    return [check for check in CHECKS if (check.is_quick or not quick) and (long or not check.is_long)]


def announcement(checks: Sequence[Check], stage: Stage) -> str:
    """What is said before anything begins."""
    seconds = longest(checks, stage)
    jobs = sum(check.jobs for check in checks)
    return (
        f"{len(checks)} checks of stage {stage.name}: {seconds / 60:.0f} minutes at most, {jobs:,} jobs, and "
        f"{most_usd(checks, stage, seconds=seconds):.2f} USD at most. Dead letters are made on purpose: their alarm goes off"
    )


def _run(stage: Stage, checks: Sequence[Check], *, previous: str | None) -> int:
    print(announcement(checks, stage), flush=True)
    try:
        ground = Ground(stage, _local() if stage.emulated else None, previous=previous)
    except (BotoCoreError, ClientError, TickwheelError) as error:
        print(
            f"stage {stage.name} was not found: {error}\nIs it deployed here? `make deploy STAGE={stage.name}`",
            file=sys.stderr,
        )
        return 1
    try:
        run = run_all(ground, checks, lambda result: print(result, flush=True))
    finally:
        ground.close()
    folder = find_home().reports / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"{stage.name}.json"
    report.write_text(json.dumps(run.as_json(), indent=2) + "\n")
    print(f"{'passed' if run.is_passed else 'FAILED'}; the report is {report}")
    return 0 if run.is_passed else 1


def _local() -> dict[str, str]:
    running = read_running()
    if running is None:
        raise SystemExit("no local cloud runs: start it with `tickwheel local up`")
    return AwsSettings(f"http://127.0.0.1:{running.port}").as_kwargs()


if __name__ == "__main__":
    # Whoever ends a run wants what it has changed put back, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
