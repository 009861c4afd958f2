"""The programs whose schedules can be read, by the names that `tickwheel import --from` takes."""

from collections.abc import Mapping

from tickwheel.imports.dialects import QUARTZ, SPRING
from tickwheel.imports.found import Source
from tickwheel.imports.sources import (
    airflow,
    apscheduler,
    celery_beat,
    crontab,
    django_celery_beat,
    eventbridge,
    github,
    kubernetes,
    quartz,
    serverless,
)

_YAML = (".yaml", ".yml", ".json")
_LINES = (".txt", ".properties", ".jsonl")

SOURCES: Mapping[str, Source] = {
    "crontab": Source("the crontab of a user, and supercronic's", crontab.reader(has_users=False), (".crontab", "")),
    "system-crontab": Source("/etc/crontab, /etc/cron.d", crontab.reader(has_users=True), (".crontab", "")),
    "kubernetes": Source("CronJobs, as YAML or JSON", kubernetes.read_kubernetes, _YAML),
    "eventbridge": Source(
        "what `aws scheduler` and `aws events` print, CloudFormation and SAM",
        eventbridge.read_eventbridge,
        (*_YAML, ".template"),
    ),
    "celery-beat": Source("a module with a beat_schedule", celery_beat.read_celery, (".py",)),
    "django-celery-beat": Source("a fixture of its models", django_celery_beat.read_django, (".json",)),
    "apscheduler": Source(
        "a job store in SQLite, or exported jobs", apscheduler.read_apscheduler, (".json", ".sqlite", ".db")
    ),
    "serverless": Source("serverless.yml", serverless.read_serverless, _YAML),
    "quartz": Source("expressions of Quartz", quartz.reader(QUARTZ), _LINES),
    "spring": Source("expressions of Spring", quartz.reader(SPRING), _LINES),
    "airflow": Source("modules with DAGs", airflow.read_airflow, (".py",)),
    "github": Source("workflows of GitHub", github.read_github, (".yaml", ".yml")),
}
