"""The last line of a program's output."""

from __future__ import annotations

from flatout.process.output import last_line


def test_the_exception_is_the_last_line_and_not_a_log_line_of_tensorflow(tmp_path):
    output = tmp_path / "output.txt"
    output.write_text(
        "Traceback (most recent call last):\nValueError: no luck\n"
        "I0000 00:00:1794746779.756399    7356 port.cc:153] oneDNN custom operations are on.\n"
        "2026-11-15 12:00:00.000000: W tensorflow/core/framework/local_rendezvous.cc:404] It is aborting\n\n"
    )
    assert last_line(output) == "ValueError: no luck"


def test_without_output_there_is_no_line(tmp_path):
    assert last_line(tmp_path / "gone.txt") == ""
    (tmp_path / "empty.txt").write_bytes(b"\n")
    assert last_line(tmp_path / "empty.txt") == ""
