"""Rules about what a plugin does beside returning values: nothing."""

from __future__ import annotations

from collections.abc import Iterator

from floorkit.testing import watch
from floorkit.testing.evidence import Evidence
from floorkit.testing.other_process import observed
from floorkit.testing.rules import rule


def _deeds(evidence: Evidence, kind: str) -> Iterator[str]:
    seen = observed(evidence)
    if seen.failure:
        yield f"in another process: {seen.failure}"
    for deed in seen.deeds:
        if deed.kind == kind:
            yield f"{deed.place}: {deed.what}"


@rule("conduct")
def no_writes(evidence: Evidence) -> Iterator[str]:
    """Hooks write, move and remove no file; the core writes what they return.

    Results are written at once, under a new name, so that a crash leaves the old ones whole.
    """
    yield from _deeds(evidence, watch.WRITES)


@rule("conduct")
def no_prints(evidence: Evidence) -> Iterator[str]:
    """Hooks print nothing and warn of nothing on the standard streams.

    A line between the lines of ``--json`` breaks it; what readers must know belongs into marks and sections.
    """
    yield from _deeds(evidence, watch.PRINTS)
    if printed := observed(evidence).printed:
        yield f"on the standard streams, below Python's own: {printed[:200]!r}"


@rule("conduct")
def no_global_state(evidence: Evidence) -> Iterator[str]:
    """Hooks change no module-level value of their package and nothing of the interpreter's global state.

    What one unit leaves behind changes the next one in this process, and not in another. Where a value is
    kept for speed alone, use functools.cache.
    """
    yield from _deeds(evidence, watch.STATE)


@rule("conduct")
def no_network(evidence: Evidence) -> Iterator[str]:
    """Hooks use no network.

    A score must not depend on what a server says today.
    """
    yield from _deeds(evidence, watch.NETWORK)


@rule("conduct")
def no_processes(evidence: Evidence) -> Iterator[str]:
    """Hooks start no process.

    The core spreads the work; a process that it does not know of escapes ``--jobs``, interrupts and clusters.
    """
    yield from _deeds(evidence, watch.PROCESSES)
