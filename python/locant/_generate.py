"""Generation from texts: tokens before the model, text behind it."""

from locant import _locant


def is_text(prompts):
    """Whether this is a text, or a list with texts in it, rather than token ids."""
    return isinstance(prompts, str) or (
        isinstance(prompts, (list, tuple)) and any(isinstance(x, str) for x in prompts)
    )


class TextPrompts:
    """Texts as token ids, and the way back from the tokens that follow them."""

    def __init__(self, model, texts):
        self.one = isinstance(texts, str)
        self.ids = model.tokenize([texts] if self.one else texts)["input_ids"]
        for n, ids in enumerate(self.ids):
            if not ids:
                raise ValueError(
                    f"[model] text {n} is empty, and its tokenizer puts no token before texts: "
                    "there is nothing to continue"
                )
        self._decode = model._tokenizer.decode
        # New tokens continue the prompt, unless that went to an encoder.
        self._before = [[] if model.info.decoder_layers else ids for ids in self.ids]

    def texts(self, tokens):
        """New texts from new tokens: a text for a text, a list for a list."""
        out = []
        for before, new in zip(self._before, tokens, strict=True):
            given = len(self._decode(before)) if before else 0
            out.append(self._decode([*before, *new])[given:])
        return out[0] if self.one else out

    def token_stream(self, stream):
        """stream(sequence, token) for the model from stream(sequence, text), and a function that
        gives out what was left at the end."""
        parts = [_locant.TextStream(self._decode, list(before)) for before in self._before]

        def add(sequence, token):
            text = parts[sequence].add(token)
            return stream(sequence, text) if text else None

        def end():
            for sequence, part in enumerate(parts):
                if text := part.end():
                    stream(sequence, text)

        return add, end
