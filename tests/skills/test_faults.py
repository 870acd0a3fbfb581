"""Values of a task are found however they are written, and other words are left."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError
from jerp.skills.document import Skill, render_skill
from jerp.skills.faults import READER_PHRASES, SkillFault, skill_faults

SEEDED = settings(deadline=None, derandomize=True)


def skill_of(text):
    return Skill("Pay", "Bills.", ("Log in.", text), ("Ask once.",))


def is_found(text, *secrets):
    found = skill_faults(skill_of(text), secrets=secrets)
    assert {(fault.kind, fault.where) for fault in found} <= {("secret", "workflow 2")}
    return bool(found)


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("Ann Lee", "Write to Ann Lee first."),
        ("Ann Lee", "Write to ANN LEE."),
        ("Ann Lee", "Write to 'ann' 'lee'."),
        ("Ann Lee", "Write to “Ann Lee”."),
        ("Ann Lee", "Write to Ann-Lee."),
        ("Ann Lee", "Write to ann_lee@example."),
        ("Ann Lee", "Write to AnnLee."),
        ("Ann Lee", "Write to A.n.n L e e."),
        ("Ann Lee", "Write to Änn Lée."),
        ("Ann Lee", "Write to \uff21\uff4e\uff4e \uff2c\uff45\uff45."),
        ("Ann Lee", "Write to \U0001d400nn Lee."),
        ("ANN", "Take ann."),
        ("Straße", "Go to STRASSE."),
        ("İzmir", "Go to izmir."),
        ("acct_17", "Open `acct_17`."),
        ("acct_17", "Open acct17."),
        ("acct_17", "Open Acct 17."),
        ("acct_17", "Open acct_\u0661\u0667."),
        ("acct-17", "Open \uff41cct\uff3f\uff11\uff17."),
        ("report.txt", "Read `report.txt`."),
        ("/home/ann", "Look into home/ann/x."),
        ("東京", "Go to 東京に."),
        ("007", "Call agent 007."),
        ("10.0.0.1", "Ping 10.0.0.1."),
        ("2024-05-01", "Set it to 2024/05/01."),
        ("10:30", "Meet at 10:30."),
        ("a", "Take A."),
        (1500, "Pay 1500."),
        (1500, "Pay 1,500."),
        (1500, "Pay $1,500.00 now."),
        (1500, "Pay 1.500,00 now."),
        (1500, "Pay 1 500."),
        (1500, "Pay 1'500."),
        (1500, "Pay 1.5e3."),
        (1500, "Pay 1500usd."),
        (1500, "Pay '1500'."),
        (1500, "Pay \uff11\uff15\uff10\uff10."),
        (1500, "Pay \u0661\u0665\u0660\u0660."),
        (1500, "Use pay_1500."),
        (1500, "Pay 1500, 20."),
        (20, "Pay 1500, 20."),
        (3, "Set 2 300 and 3 400."),
        (-1500, "Pay 1500."),
        (1500, "Pay -1500."),
        ("$1,500.00", "Pay 1500."),
        ("1500.", "Pay 1.5e3."),
        (0.5, "Wait .5 hours."),
        (0.5, "Wait 0,50 hours."),
        (0.1, "Wait 0.1 hours."),
        (np.float32(0.1), "Wait 0.1 hours."),
        (np.int64(1500), "Pay 1,500."),
        (1500.0, "Pay 1500."),
        (1234567, "Pay 12,34,567."),
        ("4111111111111111", "Use 4111 1111-1111 1111."),
        (2, "Take version 1.2.3."),
    ],
)
def test_a_value_of_the_task_is_found(secret, text):
    assert is_found(text, secret)
    assert not is_found("Do what is asked, and no more.", secret) or secret == "a"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("Ann", "Write to Anna."),
        ("Ann", "Plan it."),
        ("Ann", "Write to Ann\u0301a."),
        ("Ann Lee", "Write to Ann first, then to Lee."),
        ("acct_17", "Open acct_170."),
        ("report.txt", "Read the report."),
        ("007", "Pay 7."),
        ("10.0.0.1", "Take 1 of 10."),
        ("10:30", "Take 10, then 30."),
        (1500, "Pay 15000."),
        (1500, "Pay 150."),
        (1500, "Pay 1500.25."),
        (1500, "Open acct1500."),
        (15, "Wait 1.5 hours."),
        (15, "Take 1, then 5."),
        (500, "Pay 1,500."),
        (1500, "Pay 1,500,000."),
        (5, "Open a1.5."),
        (500, "Wait .500 hours."),
        (15000, "Pay 1,5,000."),
        (3, "Open 3f2a1."),
        (2, "Take the second."),
        ("42", "Pay 4.2."),
    ],
)
def test_other_words_and_numbers_are_left_alone(secret, text):
    assert not is_found(text, secret)


@SEEDED
@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_number_is_found_as_any_program_writes_it(number, other):
    forms = (f"{number}", f"{number:,}", f"{number:,}.00", f"{number:_}", f"{number}.0")
    forms += (f"{number:,}".replace(",", " "), f"{Decimal(number):e}", f"{number}kg")
    for form in forms:
        assert is_found(f"Pay {form} now.", number) and is_found(f"Pay {form}.", number)
        assert is_found(f"Pay {number} now.", form.removesuffix("kg"))
    assert is_found(f"Pay {number}.", other) == (number == other)


@SEEDED
@given(st.lists(st.sampled_from(["ab", "b", "abb"]), min_size=1, max_size=6))
def test_words_are_found_as_a_slow_search_finds_them(words):
    for secret in ("ab", "b b", "abb"):
        joined = secret.replace(" ", "")
        parts = [
            "".join(words[i:j]) for i in range(6) for j in range(i + 1, len(words) + 1)
        ]
        assert is_found(f"Go {'.'.join(words)}.", secret) == (joined in parts)


def test_every_text_is_searched_and_no_detail_tells_the_value():
    skill = Skill("Zed", "Of zed.", ("Ask Zed.", "Go.", "Pay 41."), ("No.", "ZED."))
    found = skill_faults(skill, secrets=["Zed", "zed", 41])
    assert found == (
        SkillFault("secret", "name", "a text of the task that begins with 'z'"),
        SkillFault("secret", "description", "a text of the task that begins with 'z'"),
        SkillFault("secret", "workflow 1", "a text of the task that begins with 'z'"),
        SkillFault("secret", "workflow 3", "a number of the task"),
        SkillFault("secret", "notes 2", "a text of the task that begins with 'z'"),
    )
    assert skill_faults(skill) == ()


def test_the_length_is_of_the_markdown():
    skill = skill_of("Pay.")
    words = len(render_skill(skill).split())
    assert skill_faults(skill, max_tokens=words) == ()
    (fault,) = skill_faults(skill, max_tokens=words - 1)
    assert (fault.kind, fault.where) == ("length", "skill")
    assert fault.detail == f"expected at most {words - 1} tokens, got {words}"
    (fault,) = skill_faults(skill, max_tokens=9, count_tokens=len)
    assert fault.detail.endswith(f"got {len(render_skill(skill))}")


@pytest.mark.parametrize("phrase", READER_PHRASES)
def test_words_to_the_reader_are_found(phrase):
    written = phrase.upper().replace("A", "\u00c1")
    (fault,) = skill_faults(skill_of(f"Now {written}, please."))
    assert (fault.kind, fault.where) == ("addresses_reader", "workflow 2")
    assert phrase in fault.detail


@pytest.mark.parametrize(
    "text",
    [
        "Follow the user's instructions.",
        "Ignore files that nobody named.",
        "Ask the user to confirm, and check the system for the rule.",
        "Act at once.",
    ],
)
def test_words_of_procedures_are_left_alone(text):
    assert skill_faults(skill_of(text)) == ()


@pytest.mark.parametrize(
    ("secrets", "message"),
    [
        ([""], "secrets: expected texts with letters or digits, got ''"),
        (["a", " /. "], "secrets: expected texts with letters or digits"),
        ([float("nan")], "secrets: expected texts and finite numbers, got nan"),
        ([float("inf")], "secrets: expected texts and finite numbers, got inf"),
        ([True], "secrets: expected texts and finite numbers, got True"),
        ([None], "secrets: expected texts and finite numbers, got None"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(secrets, message):
    with pytest.raises(InputError, match=message):
        skill_faults(skill_of("Pay."), secrets=secrets)
    with pytest.raises(InputError, match="max_tokens: expected a whole number"):
        skill_faults(skill_of("Pay."), max_tokens=0)
