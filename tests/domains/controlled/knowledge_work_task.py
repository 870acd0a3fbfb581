"""One task of the knowledge-work domain by hand, and its right briefing."""

from jerp.records import Task

TASK = Task(
    "knowledge-work/-/0",
    "knowledge-work",
    2,
    "Briefing on Old Harlow Ferry: budget, manager, colour.",
    {
        "subject": "Old Harlow Ferry",
        "sections": {"budget": "number", "manager": "name", "colour": "word"},
        "notes": [
            {
                "about": "Old Harlow Ferry",
                "superseded": True,
                "sentences": ["The budget is 90 crowns.", "Anna Tell leads the work."],
            },
            {
                "about": "Old Harlow Ferry",
                "superseded": False,
                "sentences": ["The budget is 340 crowns.", "Oda Holm leads the work."],
            },
            {
                "about": "Old Harlow Ferry",
                "superseded": False,
                "sentences": ["The colour is red.", "It has 55 visitors a day."],
            },
        ],
        "ladder": [[1, 2], [3]],
        "hidden": {
            "figures": {"budget": "340", "manager": "Oda Holm", "colour": "red"},
            "rivals": {"budget": "90", "manager": "Anna Tell", "colour": "blue"},
            "sources": {"budget": 2, "manager": 2, "colour": 3},
        },
    },
)
GOOD = " 340 crowns\n- manager: Oda Holm\n- colour: red"
