"""What the core looks at in every step, and which causes it finds to hold: clock, link, worker, observation, rules.

Each function looks at one thing and writes into the ledger; none decides what follows from it.
"""

from __future__ import annotations

from dataclasses import replace

from edgeguard.clock import ms_from_ns
from edgeguard.guard.envelope import admit
from edgeguard.guard.events import EventName, event
from edgeguard.guard.interface import WorkerPhase
from edgeguard.guard.rules import engaged_rails, holds, remember
from edgeguard.guard.sensing import causes_of, examine, stop_word
from edgeguard.guard.state import Arrival, Sight
from edgeguard.guard.turn import Turn
from edgeguard.types import Cause, Grade, Observation
from edgeguard.types.wire import Feedback, MotorFlag

_PHASES = {
    WorkerPhase.WARMING: Cause.WORKER_WARMING,
    WorkerPhase.GONE: Cause.WORKER_DEAD,
    WorkerPhase.UNAVAILABLE: Cause.WORKER_UNAVAILABLE,
}

_SAID = {
    MotorFlag.LATCHED: (
        Cause.SESSION_MISMATCH,
        "the motor controller has stopped by itself and waits for a new session",
    ),
    MotorFlag.FAULT: (Cause.CONTROLLER_FAULT, "reported by the motor controller"),
    MotorFlag.ESTOP: (Cause.CONTROLLER_ESTOP, "reported by the motor controller"),
}


def watch_clock(turn: Turn, *, back_ns: int) -> None:
    """A clock that went back or was suspended is a fault; so is a step that comes more than a tick late."""
    before, tick_ns = turn.before, turn.settings.tick_ns
    if back_ns > 0:
        turn.ledger.strike(Cause.CLOCK_JUMP, f"monotonic time went back by {ms_from_ns(back_ns):g} ms")
    step_ns = turn.suspended_ns
    if abs(step_ns) > tick_ns:
        turn.ledger.strike(Cause.CLOCK_JUMP, f"boot time and monotonic time parted by {ms_from_ns(step_ns):.0f} ms")
    late_ns = max(turn.now_ns - before.wake_ns, turn.inputs.lateness_ns)
    if late_ns > tick_ns:
        turn.counters = replace(turn.counters, overruns=turn.counters.overruns + 1)
        turn.ledger.strike(Cause.GUARD_OVERRUN, f"{ms_from_ns(late_ns):.1f} ms late")


def watch_link(turn: Turn) -> None:
    """The wire, and the motor controller behind it. A new session starts from nothing."""
    link, ledger = turn.inputs.link, turn.ledger
    session, up = (link.generation, link.session), link.up
    if up and session != turn.session:
        turn.renew = turn.renew or turn.session is not None
        turn.inhibit, turn.session, turn.at_rest = True, session, False
        turn.session_since_ns = turn.now_ns
        turn.urgent = True  # its first frame is a stop
        turn.forget_held_places()
    if not up:
        turn.at_rest = False
        ledger.hold(Cause.LINK_LOST, link.problem or link.state.value)
        return
    echo = turn.echo
    if echo is None and link.feedback is not Feedback.NONE:
        turn.at_rest = False
        ledger.hold(Cause.NO_ECHO, f"none for {ms_from_ns(turn.settings.echo_timeout_ns):g} ms")
        return
    _watch_rest(turn)
    if echo is None:
        return
    if echo.session != link.session:
        ledger.hold(Cause.SESSION_MISMATCH, f"an echo of session {echo.session} in session {link.session}")
    if echo.flags > MotorFlag.MOVING:
        for flag, (cause, detail) in _SAID.items():
            if flag in echo.flags:
                ledger.hold(cause, detail)


def _watch_rest(turn: Turn) -> None:
    """Nothing moves in a session before standstill is proven: it is shown, or stops have been sent for long enough."""
    if turn.at_rest:
        return
    shown, assumed_ns = turn.standstill, turn.settings.rest_assumed_ns
    turn.at_rest = turn.now_ns - turn.session_since_ns >= assumed_ns if shown is None else shown
    if not turn.at_rest:
        unseen = f"nobody measures it: standstill is assumed {ms_from_ns(assumed_ns):.0f} ms after the first stop"
        turn.ledger.hold(Cause.NO_ECHO, unseen if shown is None else "none has shown standstill yet")


def watch_worker(turn: Turn) -> None:
    """The model's process: its phase as its supervisor knows it, its silence, and how long it takes to start."""
    worker, before = turn.inputs.worker, turn.before.worker_phase
    starting = worker.phase is WorkerPhase.WARMING and before is WorkerPhase.WARMING
    turn.warming_ns = turn.warming_ns + turn.now_ns - turn.before.now_ns if starting else 0
    if worker.phase is not WorkerPhase.READY:
        standing = worker.detail or worker.phase.value
        turn.ledger.hold(_PHASES[worker.phase], standing)
        turn.renew = turn.renew or before is WorkerPhase.READY
        turn.silence_ns = 0
        if turn.warming_ns >= turn.settings.start_limit_ns:
            limit = f"guard.start_limit_ms = {ms_from_ns(turn.settings.start_limit_ns):g}"
            _replace_hung(turn, f"not ready within {limit}; it was at: {standing}")
        return
    if before is not WorkerPhase.READY:
        turn.ledger.strike(Cause.UNPROVEN, f"{turn.settings.on_time_to_arm} on-time answers are to be shown")
    if turn.inputs.answers:
        turn.silence_ns = 0
    if turn.silence_ns >= turn.settings.hung_after_ns:
        _replace_hung(turn, f"waited for in vain for {ms_from_ns(turn.silence_ns):.0f} ms of requests in a row")


def _replace_hung(turn: Turn, detail: str) -> None:
    """Once: until its supervisor has taken note, it hangs on."""
    turn.ledger.hold(Cause.WORKER_HUNG, detail)
    if Cause.WORKER_HUNG not in turn.ledger:
        turn.restart_worker = True
        turn.events.append(event(turn.now_ns, EventName.REPLACED, detail))


def watch_observations(turn: Turn) -> None:
    """Take what has arrived, good or bad; notice that nothing has. Idle needs no observation."""
    observation = turn.inputs.observation
    if observation is None:
        _notice_silence(turn)
    else:
        turn.last_arrival_ns = turn.absent_due_ns = turn.now_ns
        good = _take(turn, observation)
        turn.arrival = Arrival(observation=observation, arrived_ns=turn.now_ns, good=good)
        turn.view = turn.look()
    if turn.stop_said is not None:
        turn.ledger.hold(Cause.OPERATOR_STOP, turn.stop_said)


def watch_rules(turn: Turn) -> None:
    """The rules that are checked while the model decides, and the interlocks on the command in force.

    Only what is known to hold is a cause here: whatever makes a condition unknown is a cause of its own, and ends the
    command by itself. So the command is judged while nothing else speaks against it.
    """
    view = turn.view
    for motive in turn.settings.watchful:
        if holds(motive, view):
            grade = motive.grade if motive.targets is None else Grade.COMFORTABLE
            turn.ledger.hold(Cause.RULE, motive.name, grade=grade)
            break
    if turn.engagement is not None and not turn.ledger.speaks:
        rails = engaged_rails(turn.settings.guardrails, view)
        turn.verdict = admit(turn.settings.axes, turn.engagement.targets, rails)
        if turn.verdict.refusal:
            turn.ledger.strike(Cause.OUT_OF_ENVELOPE, turn.verdict.refusal)


def _take(turn: Turn, observation: Observation) -> bool:
    """The observation becomes what the rules see, without what cannot be used of it; whether all of it can."""
    turn.stop_said = stop_word(observation, settings=turn.settings)
    findings = examine(observation, settings=turn.settings, now_ns=turn.now_ns)
    fields = [finding.field for finding in findings if finding.field is not None]
    if len(fields) < len(findings):
        turn.sight = None
    else:
        turn.sight = Sight(observation=observation, arrived_ns=turn.now_ns, unusable=frozenset(fields))
        turn.engaged_bands = remember(turn.settings.bands, turn.look())
    if findings:
        for cause, detail in causes_of(findings).items():
            turn.ledger.strike(cause, detail)
        return False
    turn.ledger.note_good_observation()
    return True


def _notice_silence(turn: Turn) -> None:
    silent_ns = turn.now_ns - turn.last_arrival_ns
    if silent_ns >= turn.settings.observation_timeout_ns and not turn.idle:
        turn.ledger.hold(Cause.NO_OBSERVATION, f"none for {ms_from_ns(turn.settings.observation_timeout_ns):g} ms")
