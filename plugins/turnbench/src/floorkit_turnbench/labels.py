"""Fine annotation labels, the classes they stand for, and the two views of a speaker's track.

Source: turnbench spec, "Fine labels to classes". Labels outside the table are dropped before anything
else; the datasets count them (``Conversation.dropped_labels``), so that a misspelt label is seen.
"""

from __future__ import annotations

from typing import Final

CLASSES: Final = (
    "Turn",
    "Laughter",
    "AwkwardSilence",
    "Interruption",
    "NonFloorTakingInterruption",
    "Backchannel",
    "NonContent",
)
TURN, LAUGHTER, AWKWARD_SILENCE, INTERRUPTION, NON_FLOOR_TAKING, BACKCHANNEL, NON_CONTENT = range(7)
DROPPED: Final = -1

FINE_LABELS: Final[dict[str, int]] = {
    "Normal Turn": TURN,
    "Regular Turn": TURN,
    "Strong Floor Hold": TURN,
    "Bounded Response": TURN,
    "Filler": TURN,
    "Overlap": TURN,
    "Laughter": LAUGHTER,
    "Awkward Silence": AWKWARD_SILENCE,
    "Floor-taking Competitive Interruption": INTERRUPTION,
    "Floor-taking Cooperative Interruption": INTERRUPTION,
    "Non-floor Taking Competitive Interruption": NON_FLOOR_TAKING,
    "Non-floor Taking Cooperative Interruption": NON_FLOOR_TAKING,
    "Acknowledgement Backchannel": BACKCHANNEL,
    "Continuer Backchannel": BACKCHANNEL,
    "Reaction Backchannel": BACKCHANNEL,
    "Non-Speech Noise": NON_CONTENT,
    "Channel Bleed": NON_CONTENT,
    "Speech, Non-Linguistic": NON_CONTENT,
}

SPEAKERS: Final = (1, 2)
ANNOTATORS: Final = ("a", "b", "c")
