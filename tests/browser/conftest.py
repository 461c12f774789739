import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "e2e"))

from browser import Browser, missing  # noqa: E402


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
