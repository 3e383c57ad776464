"""Long work where nobody looks at a terminal: a line a minute for the journal."""

from __future__ import annotations

import io

from edgeguard.cli.progress import progress_lines
from edgeguard.clock import NS_PER_S, FakeClock


def test_a_line_a_minute_says_how_far_it_is():
    stream, clock = io.StringIO(), FakeClock()
    show = progress_lines(stream, clock=clock)
    for done in range(1_301):
        show("requests, hot", done, 1_300)
        clock.advance_ns(NS_PER_S // 10)
    assert stream.getvalue() == "requests, hot 600/1,300\nrequests, hot 1,200/1,300\n"


def test_what_has_no_count_is_named_alone():
    stream, clock = io.StringIO(), FakeClock()
    show = progress_lines(stream, clock=clock)
    clock.advance_ns(61 * NS_PER_S)
    show("loading", 0, 1)
    assert stream.getvalue() == "loading\n"


def test_quick_work_says_nothing():
    stream = io.StringIO()
    show = progress_lines(stream, clock=FakeClock())
    for done in range(10):
        show("convert", done, 10)
    assert not stream.getvalue()
