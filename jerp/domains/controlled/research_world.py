"""Names of an invented country, and words that its things are described by.

Every text is this project's own; `research_things` says what the words are values of.
"""

from __future__ import annotations

__all__ = [
    "ENDINGS",
    "FIRST_NAMES",
    "LAST_NAMES",
    "MODIFIERS",
    "ONSETS",
    "WORDS",
]

ONSETS = (
    *("Har", "Bel", "Cor", "Dun", "Eld", "Fen", "Gal", "Hol", "Ist", "Jor", "Kel"),
    *("Lor", "Mar", "Nor", "Ost", "Pel", "Quin", "Ras", "Sel", "Tor", "Ulm", "Ver"),
    *("Wyn", "Yar", "Ash", "Bram", "Crad", "Drom", "Esk", "Flint"),
)
ENDINGS = (
    *("low", "mere", "wick", "ford", "dale", "by", "stow", "mouth", "ness", "holt"),
    *("gate", "combe", "rigg", "haven", "ley", "den"),
)
MODIFIERS = ("Old", "New", "Upper", "Lower", "North", "South", "Little", "Great")
FIRST_NAMES = (
    *("Anna", "Oda", "Mirel", "Tobias", "Karin", "Edwin", "Lena", "Oscar", "Ruth"),
    *("Felix", "Greta", "Hugo", "Ivo", "Jana", "Klaus", "Luisa", "Martin", "Nora"),
    *("Otto", "Paula", "Rosa", "Simon", "Thea", "Victor"),
)
LAST_NAMES = (
    *("Brun", "Tell", "Varga", "Holm", "Keller", "Stroud", "Marsh", "Lind", "Frost"),
    *("Weaver", "Cole", "Barnes", "Dale", "Finch", "Grove", "Hale", "Irwin", "Jansen"),
    *("Kemp", "Lowe", "Moor", "Nash", "Orr", "Penn", "Reed", "Shaw", "Thorn", "Voss"),
)
WORDS = {
    "stone": (
        *("granite", "slate", "marble", "sandstone", "limestone", "basalt", "flint"),
        *("chalk", "quartz", "gneiss"),
    ),
    "wood": (
        *("oak", "elm", "ash", "cedar", "walnut", "maple", "birch", "larch", "beech"),
        *("cherry", "willow", "yew"),
    ),
    "metal": ("copper", "bronze", "iron", "brass", "silver", "tin", "steel", "zinc"),
    "colour": (
        *("red", "green", "yellow", "purple", "orange", "white", "black", "pink"),
        *("blue", "brown"),
    ),
    "good": (
        *("salt", "amber", "wool", "honey", "pearls", "furs", "tea", "pepper", "silk"),
        *("coffee", "sugar", "ivory"),
    ),
    "animal": (
        *("otter", "heron", "fox", "owl", "stag", "raven", "badger", "swan", "hare"),
        *("wolf", "eagle", "trout"),
    ),
    "dish": (
        *("soup", "bread", "cheese", "cake", "porridge", "sausages", "pancakes"),
        *("apples", "stew", "plums"),
    ),
}
