"""What a run of `lookup` has found, read from its words; imports nothing of jerp."""


def supported(kind, named, looked_up):
    """Whether a run found all that its question needs.

    `named` are the names in the question, and `looked_up` pairs of a name that was
    searched for and the name that its paragraph links to: None of a search that found
    nothing.
    """
    found = {name: link for name, link in looked_up if link is not None}
    if kind == "direct":
        return True
    if kind == "comparison":
        return all(name in found for name in named)
    return named[0] in found and found[named[0]] in found


def found_paragraphs(entity, looked_up):
    """`[P]` of the paragraphs about `entity`, by playing the searches again."""
    found = [False] * len(entity)
    for searched, failed in looked_up:
        for paragraph, about in enumerate(entity):
            if about == searched and not failed:
                found[paragraph] = True
    return found
