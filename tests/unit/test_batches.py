"""Many things, as many at a time as fit."""

from functions.domain.batches import batches


def test_all_parts_keep_their_order_in_batches_of_the_most():
    assert list(batches(range(5), most=2, size_of=lambda _: 0, most_size=0)) == [[0, 1], [2, 3], [4]]


def test_a_batch_is_as_large_as_it_may_be_and_no_larger():
    assert list(batches(["ab", "c", "d", "efg"], size_of=len, most_size=3)) == [["ab", "c"], ["d"], ["efg"]]


def test_a_part_that_is_too_large_by_itself_is_a_batch_alone():
    assert list(batches(["a", "long", "b"], size_of=len, most_size=3)) == [["a"], ["long"], ["b"]]


def test_nothing_is_no_batch():
    assert list(batches([], size_of=len, most_size=3)) == []
