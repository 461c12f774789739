import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "e2e"))

from browser import Browser, missing  # noqa: E402


def pytest_itemcollected(item):
    """Side by side, every second file: a Chromium in each process would be too many."""
    number = sorted(HERE.glob("test_*.py")).index(item.path)
    item.add_marker(pytest.mark.xdist_group(f"browser-{number % 2}"))


@pytest.fixture(scope="session")
def chromium():
    """One Chromium for all tests; each opens pages of its own."""
    lacks = missing()
    if lacks:
        pytest.skip(lacks)
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium):
    """Fails the test if the page said anything on its console or broke its policy."""
    yield chromium
    assert chromium.do("errors") == []
