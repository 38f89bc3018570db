from __future__ import annotations

from flatout.process.last_words import last_words


def test_the_exception_is_named_and_not_what_tensorflow_says_in_passing(tmp_path):
    output = tmp_path / "output.txt"
    output.write_text(
        "Traceback (most recent call last):\nValueError: no luck\n"
        "I0000 00:00:1794746779.756399    7356 port.cc:153] oneDNN custom operations are on.\n"
        "2026-11-15 12:00:00.000000: W tensorflow/core/framework/local_rendezvous.cc:404] It is aborting\n\n"
    )
    assert last_words(output) == "ValueError: no luck"


def test_nothing_said_is_no_word(tmp_path):
    assert last_words(tmp_path / "gone.txt") == ""
    (tmp_path / "empty.txt").write_bytes(b"\n")
    assert last_words(tmp_path / "empty.txt") == ""
