"""Small tokenizers of every family, trained here in moments, behind the two methods of ``Vocabulary``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

_CORPUS = [
    '{"turn":"left","speed":0.4}',
    '{"turn":"right","speed":1.5,"level":12}',
    '{"a":true,"b":false,"c":null,"d":"stop","e":100}',
    "the robot turned left and then right, hello 1 12 123 1234 12345 2024",
    "left leftover right righteous stop stopped slow slower slowest",
    '"0.1","0.2","0.5","10","11","12","100","101","110","200","999","-1","-10","-0.5"',
] * 20

_LETTERS = sorted(set("".join(_CORPUS)))


class TokenizerVocabulary:
    """The adapter of ``edgeguard.answer.vocabulary``'s docstring."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [one.ids for one in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def decode_batch(self, paths: Sequence[Sequence[int]]) -> list[str]:
        return self.tokenizer.decode_batch([list(path) for path in paths], skip_special_tokens=False)


# All that this one ever saw are two answers: it has them, and most of their parts, as single tokens.
_TWO_ANSWERS = ['{"a":true,"b":false}', '{"a":false,"b":true}', ': {"a":true,"b":true}\n{"a":false,"b":false}'] * 20


def byte_level(
    *splits: pre_tokenizers.PreTokenizer,
    use_regex: bool = True,
    add_prefix_space: bool = False,
    corpus: Sequence[str] = _CORPUS,
) -> Tokenizer:
    """GPT-2's family; without ``use_regex`` it merges across everything, punctuation and words alike."""
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|im_end|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def _bytes() -> list[str]:
    return [f"<0x{byte:02X}>" for byte in range(256)]


def sentencepiece_bpe(prepend_scheme: str) -> Tokenizer:
    """Word-start mark and byte fallback, no split inside a word: it merges the whole answer if the corpus lets it."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend_scheme)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=460, special_tokens=["<unk>", *_bytes()], initial_alphabet=_LETTERS, show_progress=False
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return tokenizer


def llama() -> Tokenizer:
    """The mark is written by a normalizer, before every piece of text."""
    tokenizer = sentencepiece_bpe("never")
    tokenizer.pre_tokenizer = None  # type: ignore[assignment]
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return tokenizer


def sentencepiece_unigram() -> Tokenizer:
    pieces = ["▁", "▁left", "left", "right", "turn", '{"', '":"', '","', '":', "}", ',"', "speed", "over", "stop"]
    pieces += ["true", "false", "null", "0.", "10", "11", "100", "1", "12", "123", "level", "slow", "er"]
    singles = [letter for letter in _LETTERS if letter not in pieces and letter != " "]
    vocabulary = [("<unk>", 0.0), *((byte, -20.0) for byte in _bytes())]
    vocabulary += [(piece, -3.0 - len(piece) / 10) for piece in pieces] + [(letter, -6.0) for letter in singles]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return tokenizer


_THREE_DIGITS = pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated")
_ONE_DIGIT = pre_tokenizers.Digits(individual_digits=True)

FAMILIES: dict[str, Callable[[], Tokenizer]] = {
    "byte-level": byte_level,
    "byte-level, one digit a token": lambda: byte_level(_ONE_DIGIT),
    "byte-level, up to three digits a token": lambda: byte_level(_THREE_DIGITS),
    "byte-level, merging across everything": lambda: byte_level(use_regex=False),
    "byte-level, whole answers a token": lambda: byte_level(use_regex=False, corpus=_TWO_ANSWERS),
    "byte-level, with a prefix space": lambda: byte_level(add_prefix_space=True),
    "sentencepiece BPE, mark first": lambda: sentencepiece_bpe("first"),
    "sentencepiece BPE, mark always": lambda: sentencepiece_bpe("always"),
    "sentencepiece BPE, mark by normalizer": llama,
    "sentencepiece unigram": sentencepiece_unigram,
}


@functools.cache
def vocabulary(family: str) -> TokenizerVocabulary:
    return TokenizerVocabulary(FAMILIES[family]())
