"""Lines of text that no format has written: a motor controller may say anything, and the guard reads it in its tick."""

from __future__ import annotations

from functools import reduce
from operator import xor

import pytest

from edgeguard.link.odrive_codec import OdriveCodec
from edgeguard.link.text_codec import TextCodec
from edgeguard.link.text_line import NUMBER, WORD, TextLine

LONG = [
    "1" * 990,
    "1" * 300 + " " + "1" * 600 + "x",
    "1" + " " * 480 + "2" + " " * 480 + "x y",
    "0.5 " * 240 + "x",
    "1," * 490 + "x",
    "," * 990,
    " " * 990,
]
"""Each takes a pattern that can be read in several ways from seconds to longer than anybody waits."""

FORMATS = ["{linear} {angular}", "odom {linear} {angular} {_}", "{_},{_},{_},{_},{linear},{angular}"]


@pytest.mark.parametrize("feedback", FORMATS)
def test_a_long_line_that_does_not_fit_is_dropped_at_once(feedback):
    codec = TextCodec(axes=["linear", "angular"], command="v {linear} {angular}\n", feedback=feedback)
    lines = LONG + [feedback.split("{")[0] + line for line in LONG]
    assert codec.feed("".join(f"{line}\n" for line in lines).encode()) == []
    assert codec.corrupt == len(lines)


def test_so_it_is_where_the_protocol_is_a_product_s():
    codec = OdriveCodec(motors={"left": 0}, turns={"left": 1.0}, errors="axis{}.active_errors")
    for said in (b"1" * 120 + b" " + b"1" * 120 + b"x", b"v 0 " + b"1" * 240, b"1" * 100 + b" " * 140):
        assert codec.feed(b"%s*%d\n" % (said, reduce(xor, said, 0))) == []
    assert codec.corrupt == 3


PLACES = {"linear": NUMBER, "angular": NUMBER, "_": WORD}

READ = [
    ("{linear} {angular}", "0.5 -1e-3", ("0.5", "-1e-3")),
    ("{linear} {angular}", "   0.5      1  ", ("0.5", "1")),
    ("v={linear}, w={angular};", "v= 0.50 , w=  .5 ;", ("0.50", ".5")),
    ("{_},{_},{linear},{_},{angular}", "12,ok,0.5,x y,1", None),
    ("{_},{_},{linear},{_},{angular}", "12,ok,0.5,x;y,1", ("0.5", "1")),
    ("{_},{_},{linear},{_},{angular}", "12,ok,0.5,xy,1,2", None),
    ("{linear}  {angular}", "1 2", None),
    ("{{{linear}}} {angular}", "{1} 2", ("1", "2")),
    ('{{"T":1,"L":{linear},"R":{angular}}}', '{"T":1,"L":0.5,"R":-0.5}', ("0.5", "-0.5")),
]


@pytest.mark.parametrize(("form", "line", "axes"), READ)
def test_numbers_may_be_padded_and_words_are_passed_over(form, line, axes):
    read = TextLine(form + "\n", places=PLACES).read(line)
    assert axes == (None if read is None else (read["linear"], read["angular"]))


def test_an_axis_has_one_place():
    with pytest.raises(ValueError, match="a place is there twice"):
        TextLine("{linear} {linear}\n", places=PLACES)
