"""Classes of the errors of attempts that the scheduler itself finds; targets have others."""

WORKER_DIED = "worker_died"
"""The class of the error that a job has whose workers died of it."""

SILENT = "silent"
"""The class of the error of an attempt whose target answered 202 and never completed the job."""

RUN_DEADLINE = "run_deadline"
"""The class of the error of a job whose run has taken as long as it may, attempts and waits included."""

NOT_CALLED = "not_called"
"""The class of the error of an at_most_once job whose start was written, and whose target was not called any more."""

NOT_PROMOTED = "not_promoted"
"""The class of the error of a job that no ready queue takes, in any way."""
