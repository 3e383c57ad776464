"""The model's own chat template, rendered once: a conversation becomes fixed text with slots between.

Afterwards a prompt is text put together, so no template runs while a robot moves. The template comes with the model
and is run in jinja2's sandbox. It is not given the date: the prefix must be the same tomorrow.

Raises ``PromptError`` when a template cannot be rendered, or does not keep every message once and in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edgeguard.errors import PromptError


def render_chat(template: str, *, roles: Sequence[str], special: Mapping[str, str]) -> tuple[str, ...]:
    """The text before, between and behind the messages of ``roles`` (``system``, ``user``, ``assistant``), in order.

    It is one text more than there are roles; the last one opens the assistant's turn. ``special`` are the token texts
    that the template may name, such as ``bos_token``.
    """
    slots = [f"\ue001{index}\ue002" for index in range(len(roles))]
    messages = [{"role": role, "content": slot} for role, slot in zip(roles, slots, strict=True)]
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _refuse
    try:
        rendered = environment.from_string(template).render(messages=messages, add_generation_prompt=True, **special)
    except (TemplateError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise PromptError(f"the model's chat template refuses {', '.join(roles)}: {error}") from error
    pieces = []
    for role, slot in zip(roles, slots, strict=True):
        piece, found, rendered = rendered.partition(slot)
        if not found or slot in rendered:
            raise PromptError(f"the model's chat template does not keep a message of {role!r} once and in order")
        pieces.append(piece)
    return (*pieces, rendered)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
