"""The tests that a run collected."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session, items):
    session.collected = {item.nodeid for item in items}
