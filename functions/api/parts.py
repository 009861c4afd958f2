"""What the API is made of, by the names of the fields that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from functions.api.admission.admission import Admission
from functions.api.admission.gate import Gate
from functions.api.admission.quota import Quota
from functions.api.dead_letters.finder import DeadLetterFinder
from functions.api.dead_letters.purge import Purger
from functions.api.dead_letters.replay import Replayer
from functions.api.jobs.asked import AskedFor
from functions.api.jobs.batch_intake import BatchIntake
from functions.api.jobs.called_back import CalledBack
from functions.api.jobs.intake import Intake
from functions.api.jobs.known_ids import KnownIds
from functions.api.jobs.report_outcome import OutcomeReports
from functions.api.jobs.submit import Submitter
from functions.api.jobs.whole_results import WholeResults
from functions.api.schedules.asked_fires import AskedFires
from functions.api.schedules.extra_runs import ExtraRuns

PARTS: Mapping[str, type] = MappingProxyType(
    {
        "admission": Admission,
        "asked": AskedFires,
        "asked_for": AskedFor,
        "batch": BatchIntake,
        "called_back": CalledBack,
        "extra_runs": ExtraRuns,
        "finder": DeadLetterFinder,
        "gate": Gate,
        "intake": Intake,
        "known": KnownIds,
        "outcome_reports": OutcomeReports,
        "purger": Purger,
        "quota": Quota,
        "replayer": Replayer,
        "submitter": Submitter,
        "whole_results": WholeResults,
    }
)
