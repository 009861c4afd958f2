"""How other programs read five fields of a cron."""

from dataclasses import dataclass
from typing import Literal

WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How the fields of one program are read.

    sunday: its number. has_seven: Sunday is 7 too. join: when a day must match both day fields: `star` (one of them begins with a
    star), `bare_star` (one of them has a star without a step), `both` (always). wraps: ranges may run backwards. has_letters: L, W, # and /5.
    lone_last: what a lone L means as a weekday. gap, fold: what it does at a clock change; None where that is not documented.
    """

    name: str
    sunday: int = 0
    has_seven: bool = False
    join: Literal["star", "bare_star", "both"] = "star"
    wraps: bool = False
    has_letters: bool = False
    lone_last: str | None = None
    gap: str | None = None
    fold: str | None = None
    follows_tickwheel: bool = False

    @property
    def weekday_bounds(self) -> tuple[int, int]:
        """The lowest and the highest number of a weekday."""
        return (1, 7) if self.sunday == 1 else (0, 7 if self.has_seven else 6)

    def weekday(self, number: int) -> int:
        """The weekday of a number; 0 is Sunday."""
        return (number - self.sunday) % 7


TICKWHEEL = Dialect(name="Tickwheel", has_seven=True, wraps=True, has_letters=True, follows_tickwheel=True)

CRONTAB = Dialect(name="cron", has_seven=True, follows_tickwheel=True)
"""Debian's cron, whose rules for clock changes and for the two day fields are Tickwheel's."""

KUBERNETES = Dialect(name="Kubernetes", join="bare_star", gap="skip", fold="both")
"""robfig/cron: https://pkg.go.dev/github.com/robfig/cron/v3#hdr-Time_zones"""

EVENTBRIDGE = Dialect(name="EventBridge", sunday=1, join="both", has_letters=True, gap="skip", fold="first")
"""https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html"""

CELERY = Dialect(name="Celery", join="both", wraps=True)
"""https://docs.celeryq.dev/en/stable/userguide/periodic-tasks.html#crontab-schedules"""

APSCHEDULER = Dialect(name="APScheduler", sunday=6, join="both", has_letters=True, gap="skip", fold="both")
"""https://apscheduler.readthedocs.io/en/3.x/modules/triggers/cron.html#daylight-saving-time-behavior"""

QUARTZ = Dialect(name="Quartz", sunday=1, join="both", wraps=True, has_letters=True, lone_last="sat")
"""https://www.quartz-scheduler.org/documentation/quartz-2.3.0/tutorials/crontrigger.html"""

SPRING = Dialect(name="Spring", has_seven=True, join="both", has_letters=True)
"""https://docs.spring.io/spring-framework/docs/current/javadoc-api/org/springframework/scheduling/support/CronExpression.html"""

AIRFLOW = Dialect(name="Airflow", has_seven=True, wraps=True)
"""croniter, which joins the day fields as cron does"""

GITHUB = Dialect(name="GitHub", has_seven=False)
"""https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#schedule"""
