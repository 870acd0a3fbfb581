"""A tokenizer of whole words, for worlds in words."""

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

PIECES = Regex(r"\n|>|[.,:]")


def word_tokenizer(*texts):
    """Knows what is in `texts`; 0 is the word "pad", 1 any that it does not know."""
    split = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(" "), "removed"),
            pre_tokenizers.Split(PIECES, "isolated"),
        ]
    )
    words = {word for text in texts for word, _ in split.pre_tokenize_str(text)}
    known = {"pad": 0, "<other>": 1}
    known |= {word: 2 + i for i, word in enumerate(sorted(words | {"\n", ">"}))}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="<other>"))
    tokenizer.pre_tokenizer = split
    return tokenizer
