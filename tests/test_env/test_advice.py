import pytest

from mmsoftmor.env.advice import FALLBACK, explain


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("OSError: [Errno 28] No space left on device", "disk space"),
        ("c++: fatal error: Killed signal terminated program cc1plus", "MAX_JOBS=1"),
        ("x.cpp:1:10: fatal error: Python.h: No such file or directory", "python3-dev"),
        ("#error You need C++20 or later compatible compiler\nerror: 1", "too new"),
        ("#error -- unsupported GNU version! gcc versions later than 14", "CXX=g++"),
        ("ModuleNotFoundError: No module named 'pkg_resources'", "setuptools<82"),
        ("RuntimeError: The detected CUDA version (12.4) mismatches the version", "CUDA_HOME"),
        ("error: command 'g++' failed: No such file or directory", "build-essential"),
        ("ERROR: No matching distribution found for torch==2.12.1", "pip config list"),
        ("ReadTimeoutError: Read timed out.", "network"),
    ],
)
def test_known_failures_get_their_own_advice(log, told):
    assert told in explain(f"some line\n{log}\n")[1]


def test_reason_is_the_lines_that_tell_it_not_the_end_of_the_log():
    log = "[1/9] c++ -c a.cpp\na.cpp:3: error: no such member\nnote: x\nnote: y\n" + "more\n" * 50
    assert explain(log) == (["a.cpp:3: error: no such member"], FALLBACK)


def test_line_that_the_advice_rests_on_is_shown_first():
    lost = "WARNING: Retrying after connection broken by 'NewConnectionError(...)'"
    log = f"{lost}\n{lost}\nERROR: a\nERROR: b\nERROR: No matching distribution found for torch"
    reason, advice = explain(log)
    assert reason[0] == lost
    assert reason[-1].startswith("ERROR: No matching")
    assert "network failed" in advice


def test_log_without_a_telling_line_gives_its_end():
    assert explain("one\ntwo\n\nthree\n") == (["one", "two", "three"], FALLBACK)


def test_empty_log_gives_no_lines():
    assert explain("") == ([], FALLBACK)
