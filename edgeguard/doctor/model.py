"""The model: its folder, whether the profile is this machine's, and one answer by the provider that is really used."""

from __future__ import annotations

from collections.abc import Iterator

from edgeguard.bench.observations import draw_fields
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.board import read_fingerprint
from edgeguard.budget.profile_json import load_profile
from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.doctor.finding import Finding, fail, ok, warn
from edgeguard.doctor.patient import Patient
from edgeguard.model.progress import silent
from edgeguard.runtime.profile_check import ProfileCheck
from edgeguard.runtime.worker_command import find_model_folder, find_model_folders, worker_argv
from edgeguard.types import Cause, Finish, Observation, Request

ANSWER_LIMIT_NS = 30 * NS_PER_S


def check_model(patient: Patient) -> Iterator[Finding]:
    """``ModelError`` when it has not been built."""
    for config in patient.config.by_model:
        folder = find_model_folder(config)
        if not folder.is_dir():
            yield fail(f"{folder}: no such folder", "set model.folder, or: edgeguard model build")
            return
        n_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        yield ok(f"{config.model.folder}: {n_bytes / 1e6:.0f} MB in {folder}")


def check_profile(patient: Patient) -> Iterator[Finding]:
    """``ProfileError`` when there is none, or it was measured at another period."""
    measure = f"edgeguard calibrate {patient.config.file} --out PROFILE, on this machine as it is now"
    if patient.profile is None:
        yield warn("none was named", "give --profile, or make one: " + measure)
        return
    ProfileCheck(patient.profile, period_ns=patient.config.timing.period_ns)
    profile = load_profile(patient.profile)
    board = read_fingerprint(root=patient.root)
    then = {name: value for name, value in profile.fingerprint.items() if name in board}
    differences = [f"{name}: {then.get(name)} -> {now}" for name, now in board.items() if then.get(name) != now]
    if differences:
        yield fail(f"{patient.profile.name} is another machine's: {'; '.join(differences)}", measure)
        return
    bound = profile.bound
    yield ok(
        f"{profile.kind}, of {profile.created}: {ms_from_ns(bound.bound_ns):.1f} ms at p{100 * bound.percentile:g} "
        f"with {100 * bound.confidence:g} % confidence; the fingerprint is this machine's"
    )


def check_answer(patient: Patient) -> Iterator[Finding]:
    """Loads the model beside nothing else; the errors of its worker are their own findings."""
    if patient.guard is not None:
        if Cause.PROFILE_STALE in patient.guard.causes:
            yield fail(
                f"the running guard refuses its profile: {Cause.PROFILE_STALE.value}",
                f"edgeguard log tail names the difference; edgeguard calibrate {patient.config.file} ends it",
            )
        yield ok(f"the running guard's worker is {patient.guard.worker}")
        return
    if not patient.asks_model:
        yield ok("not asked (--no-model)")
        return
    profile = patient.profile if patient.profile is not None and patient.profile.is_file() else None
    argv = patient.worker or worker_argv(patient.config_file, profile, models=find_model_folders(patient.config))
    with WorkerClient.start(argv=argv, clock=patient.clock) as client:
        ready = client.wait_ready(progress=silent)
        now_ns = patient.clock.now_ns()
        observation = Observation(fields=next(draw_fields(patient.config)), captured_ns=now_ns)
        request = Request(
            request_id=1, epoch=1, observation=observation, answer_by_ns=now_ns + ANSWER_LIMIT_NS, shadow=True
        )
        answer = client.ask(request, admit=False, limit_ns=ANSWER_LIMIT_NS).answer
    identity = ready.identity
    who = f"provider {identity.get('provider', 'unknown')}, {identity.get('threads', '?')} threads"
    if answer.finish is not Finish.COMPLETE:
        yield fail(f"{who}: no answer ({answer.finish.value}: {answer.detail})", "the worker's own words say why")
        return
    if profile is not None:
        then = load_profile(profile)
        known = {**then.fingerprint, **identity}
        stale = then.differences(known, placement=ready.placement)
        if stale:
            yield fail(
                f"{who}: not the model of the profile: {'; '.join(stale)}", f"edgeguard calibrate {patient.config.file}"
            )
    sizes = " + ".join(f"{one.k} tokens in {ms_from_ns(one.elapsed_ns):.1f} ms" for one in answer.passes)
    yield ok(f"{who}: one answer in {ms_from_ns(answer.finished_ns - answer.started_ns):.1f} ms ({sizes})")
