"""What trunk's runs say together: which causes broke it and when, the suspects, what is hidden, what is over."""

from bot.core.triage.findings import Finding, Ineligible, Kind, Known, Stretch, find, greens_needed
from bot.core.triage.kept import Kept, kept_block
from bot.core.triage.lifecycle import Change, Hand, State, Step, step
from bot.core.triage.masking import masked, stood_behind
from bot.core.triage.runs import (
    Digest,
    Failure,
    capacity_of,
    digest,
    series_of,
    suite_of,
    suite_test,
)
from bot.core.triage.signals import Look, Test, Trunk, Word
from bot.core.triage.survey import Remembered, Verdict, areas_of_cause, suite_areas, survey
from bot.core.triage.suspects import (
    Candidate,
    Suspect,
    cannot_break,
    changed_words,
    paths_of,
    rank,
    words_of,
)
from bot.core.triage.texts import Sample, omitted_signature, sign_again

__all__ = [
    "Candidate",
    "Change",
    "Digest",
    "Failure",
    "Finding",
    "Hand",
    "Ineligible",
    "Kept",
    "Kind",
    "Known",
    "Look",
    "Remembered",
    "Sample",
    "State",
    "Step",
    "Stretch",
    "Suspect",
    "Test",
    "Trunk",
    "Verdict",
    "Word",
    "areas_of_cause",
    "cannot_break",
    "capacity_of",
    "changed_words",
    "digest",
    "find",
    "greens_needed",
    "kept_block",
    "masked",
    "omitted_signature",
    "paths_of",
    "rank",
    "series_of",
    "sign_again",
    "step",
    "stood_behind",
    "suite_areas",
    "suite_of",
    "suite_test",
    "survey",
    "words_of",
]
