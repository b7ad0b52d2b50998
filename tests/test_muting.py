"""Warnings are muted in threads that interleave, and no longer than anybody wants that."""

import pickle
import threading
import warnings

import pytest

from skdpgen._process.muting import muted, raised


@pytest.fixture
def said():
    """List the warnings that get out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [str(warning.message) for warning in caught]


def test_threads_that_interleave(said):
    """The first one leaves while the second one is inside."""
    events = [threading.Event() for _ in range(3)]

    def first():
        with muted():
            events[0].set()
            assert events[1].wait(30)
        events[2].set()

    def second():
        assert events[0].wait(30)
        with muted():
            events[1].set()
            assert events[2].wait(30)
            warnings.warn("Smith", stacklevel=1)

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert said() == []
    warnings.warn("afterwards", stacklevel=1)
    assert said() == ["afterwards"]


@pytest.mark.catches(
    "_process.muting:_ActedOn.__subclasscheck__",
    '[("ignore", muted) for muted in tuple(_muted)]',
    "[]",
)
def test_threads_that_are_started_inside(said):
    with muted():
        thread = threading.Thread(target=lambda: warnings.warn("Smith", stacklevel=1))
        thread.start()
        thread.join()
    assert said() == []


@pytest.mark.catches("_process.muting:muted", "_muted.remove(category)", "_muted.clear()")
def test_threads_stay_muted_until_the_last_one_that_mutes_them_has_left(said):
    """Whatever else is muted meanwhile, and less."""
    with muted():
        with muted(UserWarning), muted():
            pass
        thread = threading.Thread(target=lambda: warnings.warn("Smith", stacklevel=1))
        thread.start()
        thread.join()
    assert said() == []


def test_categories_and_nesting(said):
    with muted(UserWarning):
        warnings.warn("a", UserWarning, stacklevel=1)
        warnings.warn("b", RuntimeWarning, stacklevel=1)
        with raised(), pytest.raises(UserWarning, match="c"):
            warnings.warn("c", UserWarning, stacklevel=1)
        with raised(), muted():
            warnings.warn("d", stacklevel=1)
        warnings.warn("e", UserWarning, stacklevel=1)
    with pytest.raises(KeyError), muted():
        raise KeyError
    warnings.warn("f", UserWarning, stacklevel=1)
    assert said() == ["b", "f"]


def test_errors_are_raised_in_their_own_thread_only(said):
    with raised():
        thread = threading.Thread(target=lambda: warnings.warn("other", stacklevel=1))
        thread.start()
        thread.join()
    assert said() == ["other"]


@pytest.mark.catches(
    "_process.muting:_install",
    "warnings.filters[: len(_FILTERS)] != _FILTERS",
    "not set(_FILTERS) <= set(warnings.filters)",
)
def test_filters_that_were_put_first_afterwards(said):
    with muted():
        pass
    for action in ("always", "error"):
        warnings.simplefilter(action)
        with muted():
            warnings.warn("Smith", stacklevel=1)
        assert said() == []
    n_filters = len(warnings.filters)
    with muted():
        assert len(warnings.filters) == n_filters


def test_filters_that_are_sent_to_other_processes():
    """They match nothing there, and import nothing of this package."""
    with muted():
        written = pickle.dumps(warnings.filters[:2])
    assert b"skdpgen" not in written
    for _, _, category, _, _ in pickle.loads(written):
        assert not issubclass(UserWarning, category)


def test_warnings_that_have_been_shown_are_raised():
    """Python shows a warning of a line once, and then does not look at filters."""

    def warn():
        warnings.warn("again", UserWarning, stacklevel=1)

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        warn()
        with pytest.raises(UserWarning, match="again"), raised():
            warn()
