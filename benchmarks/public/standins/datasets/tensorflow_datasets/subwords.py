"""Stands in for the text encoders of tensorflow_datasets: a number for a known word, one for each letter of others."""


class SubwordTextEncoder:
    def __init__(self, vocab_list=()):
        self.words = list(vocab_list)
        self.numbers = {word: number for number, word in enumerate(self.words, 1)}

    @classmethod
    def build_from_corpus(cls, corpus_generator, target_vocab_size, **others):
        counts = {}
        for text in corpus_generator:
            for word in plain(text).split():
                counts[word] = counts.get(word, 0) + 1
        return cls(sorted(counts, key=lambda word: (-counts[word], word))[: target_vocab_size - 257])

    @property
    def vocab_size(self):
        return len(self.words) + 257

    def encode(self, text):
        found = []
        for word in plain(text).split():
            letters = [len(self.words) + 1 + byte for byte in word.encode()]
            found += [self.numbers[word]] if word in self.numbers else letters
        return found

    def decode(self, numbers):
        known = len(self.words)
        return " ".join(
            self.words[int(number) - 1] if 0 < number <= known else chr(max(int(number) - known - 1, 32))
            for number in numbers
        )


def plain(text):
    return text.decode() if isinstance(text, bytes) else str(text)
