"""A few hundred wild command lines; cli_fuzz.py says what may not happen."""

from cli_fuzz import Fuzz


def test_no_word_crashes_the_command_line_or_reaches_the_terminal_raw(tmp_path):
    fuzz = Fuzz(tmp_path, seed=7)
    assert fuzz.run(200) == []
    assert {0, 1, 2} <= fuzz.seen, "the words are too tame"
