import pytest

from mmsoftmor.env.versions import Range, missing, release, satisfies, split_requirement


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("2.12.1", (2, 12, 1)),
        ("2.12.1+cu130", (2, 12, 1)),
        ("2.0.0rc4", (2,)),
        ("2.0", (2,)),
        ("unknown", ()),
    ],
)
def test_release_keeps_the_numbers_alone(version, numbers):
    assert release(version) == numbers


def test_versions_compare_as_numbers_not_as_text():
    assert "3.9" not in Range("3.10", "3.13")
    assert "3.10.13" in Range("3.10", "3.13")
    assert "3.13.0" not in Range("3.10", "3.13")


def test_range_reads_as_a_pip_requirement():
    assert str(Range("80", "82")) == ">=80,<82"


@pytest.mark.parametrize(
    ("requirement", "name", "clauses"),
    [
        ("ftfy", "ftfy", []),
        ("onedl-mmcv==2.3.6", "onedl-mmcv", [("==", "2.3.6")]),
        ("setuptools>=80,<82", "setuptools", [(">=", "80"), ("<", "82")]),
        ('timm>=1.0; extra == "tests"', "timm", [(">=", "1.0")]),
        ("pytest (>=7)", "pytest", [(">=", "7")]),
    ],
)
def test_requirements_split_into_name_and_clauses(requirement, name, clauses):
    assert split_requirement(requirement) == (name, clauses)


@pytest.mark.parametrize("requirement", ["", "numpy @ somewhere", "numpy>1 2"])
def test_what_is_no_requirement_is_refused(requirement):
    with pytest.raises(ValueError, match="not a requirement"):
        split_requirement(requirement)


def test_satisfies_agrees_with_packaging():
    specifiers = pytest.importorskip("packaging.specifiers")
    for text in ("==2.0", "!=2.0", ">=1.22,<2", ">80,<=82", "<2.14"):
        clauses = split_requirement(f"x{text}")[1]
        for version in ("1.21.9", "1.22", "1.26.4", "2.0", "2.0.0", "2.14", "80", "81.1", "82.0.1"):
            assert satisfies(version, clauses) == (version in specifiers.SpecifierSet(text))


def test_missing_lists_absent_and_outdated_distributions_in_order():
    wanted = ["pytest>=1", "no-such-distribution", "pytest>=9999"]
    assert missing(wanted) == ["no-such-distribution", "pytest>=9999"]
