from functions.domain.lifecycle import TRANSITIONS, State
from scripts.draw_lifecycle import CAUSE, MEANING, PAGE, page


def test_the_lifecycle_page_says_what_the_transition_table_does():
    assert PAGE.read_text() == page(), "run python scripts/draw_lifecycle.py"


def test_every_state_and_event_is_explained():
    assert set(MEANING) == set(State)
    assert set(CAUSE) == set(TRANSITIONS)
