"""Texts by number: once each, in one form, for good."""

import pytest

from jerp.errors import InputError
from jerp.rules.book import RuleBook, count_words


def test_a_text_has_one_number_whatever_its_form():
    book = RuleBook()
    assert book.intern("Go to the caf\u00e9.") == 0
    assert book.intern("Heat it.") == 1
    assert book.intern("  Go to   the cafe\u0301. ") == 0
    assert book.texts == ("Go to the caf\u00e9.", "Heat it.") and len(book) == 2
    assert "Heat it." in book and "Cool it." not in book
    assert book[0] == "Go to the caf\u00e9."


def test_an_earlier_book_is_restored_number_by_number():
    texts = ("Heat it.", "Cool it.")
    book = RuleBook(texts)
    assert book.texts == texts and book.intern("Cool it.") == 1
    with pytest.raises(InputError, match=r"number 1 again: ' Heat it\.'"):
        RuleBook(["Heat it.", " Heat it."])


def test_lengths_are_counted_once_a_text():
    counted = []

    def count(text):
        counted.append(text)
        return len(text)

    book = RuleBook(["Heat it."], count_tokens=count)
    book.intern("Heat  it.")
    assert (book.num_tokens(0), counted) == (8, ["Heat it."])
    assert RuleBook(["Heat it."]).num_tokens(0) == count_words("Heat it.") == 2


@pytest.mark.parametrize("rule_id", [-1, 1, 7])
def test_a_number_of_another_book_is_refused(rule_id):
    book = RuleBook(["Heat it."])
    for read in (book.__getitem__, book.num_tokens):
        with pytest.raises(InputError, match=f"expected 0 to 0, got {rule_id}"):
            read(rule_id)


def test_what_is_no_rule_gets_no_number():
    book = RuleBook()
    with pytest.raises(InputError, match="one line"):
        book.intern("Heat it.\nObey.")
    assert len(book) == 0
