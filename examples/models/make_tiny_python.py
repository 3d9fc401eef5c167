"""Makes examples/models/tiny-python: a Llama of half a million parameters that has read Python's own library.

    .venv/bin/python -m examples.models.make_tiny_python --out FOLDER

A SentencePiece vocabulary as Llama's (BPE with byte pieces) and the model are trained on the standard
library's sources, without the files that study/data.py holds back. A text that the model reads is a block:
it begins at any line, is moved to the left by that line's indentation, and ends (</s>) before the first
line that stands further left. What a step reads depends on its number alone, so two runs differ by rounding,
and a run that is killed goes on where it was when started again.
"""

import argparse
import io
import json
import math
import pathlib
import platform
import random
import time

import sentencepiece
import torch
import transformers

from study import data

CONTEXT = 256
BATCH = 16
STEPS = 1500
VOCABULARY = 1024
BOS, EOS = 1, 2
WARM_UP = 50
RATES = 0.02, 4e-3  # of Muon and AdamW
LONGEST_BLOCK = 3000  # characters: more than CONTEXT tokens
# A prompt may end anywhere, in a word too: so do the first tokens of some blocks, after so many characters.
PROMPT_SHARE, LONGEST_PROMPT = 0.25, 60
NO_PREFIX = b"\x1a\x02\x18\x00"  # behind a model's bytes: normalizer_spec.add_dummy_prefix = false


class Words:
    """The vocabulary. Spaces and lines stay as they are; a line's end is the byte piece <0x0A>."""

    def __init__(self, texts):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line for text in texts for line in text.splitlines() if line.strip()),
            model_writer=model, model_type="bpe", vocab_size=VOCABULARY, byte_fallback=True,
            normalization_rule_name="identity", remove_extra_whitespaces=False,
            allow_whitespace_only_pieces=True, split_digits=True, character_coverage=0.9999,
            unk_id=0, bos_id=BOS, eos_id=EOS, pad_id=-1, num_threads=1, minloglevel=2,
            max_sentence_length=1 << 14,
        )  # fmt: skip
        self.model = model.getvalue()
        self.first = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        self.further = sentencepiece.SentencePieceProcessor(model_proto=self.model + NO_PREFIX)

    def encode(self, text, prompt=0):
        """Tokens, of which one ends after the first `prompt` characters."""
        if not prompt:
            return [BOS, *self.first.encode(text)]
        return [BOS, *self.first.encode(text[:prompt]), *self.further.encode(text[prompt:])]

    def save(self, folder):
        (folder / "tokenizer.model").write_bytes(self.model)
        names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
        plain = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
        config = {
            "tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False,
            "legacy": False, "clean_up_tokenization_spaces": False, "model_max_length": CONTEXT,
            **names,
            "added_tokens_decoder": {
                str(n): {"content": name, "special": True, **plain}
                for n, name in enumerate(names.values())
            },
        }  # fmt: skip
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def indentation(line):
    return len(line) - len(line.lstrip(" "))


class Blocks:
    """Texts to train on."""

    def __init__(self, texts, words):
        self.files = [text.splitlines(keepends=True) for text in texts]
        self.starts = [
            (file, line)
            for file, lines in enumerate(self.files)
            for line in range(len(lines))
            if lines[line].strip()
        ]
        self.words = words

    def block(self, file, begin):
        """The text, and whether it is whole."""
        lines = self.files[file]
        left = indentation(lines[begin])
        out, size = [], 0
        for line in lines[begin:]:
            if line.strip() and indentation(line) < left:
                break
            out.append(line[left:] if line.strip() else "\n")
            size += len(out[-1])
            if size > LONGEST_BLOCK:
                return "".join(out), False
        return "".join(out).rstrip() + "\n", True

    def rows(self, step):
        """Tokens (BATCH, CONTEXT + 1) of blocks drawn at random, one behind the other."""
        draw, ids = random.Random(step), []
        while len(ids) < BATCH * (CONTEXT + 1):
            text, whole = self.block(*draw.choice(self.starts))
            prompt = draw.randint(1, LONGEST_PROMPT) if draw.random() < PROMPT_SHARE else 0
            ids += (self.words.encode(text, prompt) + [EOS] * whole)[: CONTEXT + 1]
        return torch.tensor(ids[: BATCH * (CONTEXT + 1)]).view(BATCH, CONTEXT + 1)


def held_out_rows(texts, words):
    """The beginning of each file that was held back, (N, CONTEXT + 1)."""
    rows = [words.encode(text[:LONGEST_BLOCK])[: CONTEXT + 1] for text in texts]
    return torch.tensor([row for row in rows if len(row) == CONTEXT + 1])


def loss_of(model, rows):
    """Mean of -ln p(next token)."""
    logits = model(rows[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


@torch.no_grad()
def held_out_loss(model, rows):
    losses = [loss_of(model, part).item() * len(part) for part in rows.split(BATCH)]
    return sum(losses) / len(rows)


def new_model():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=96, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=256, max_position_embeddings=CONTEXT,
            tie_word_embeddings=True, bos_token_id=BOS, eos_token_id=EOS,
        )
    )  # fmt: skip


def orthogonal(x):
    """Matrices (N, rows, columns) with the singular vectors of x and singular values near 1: five steps
    of the iteration that Muon uses."""
    if x.shape[1] > x.shape[2]:
        return orthogonal(x.mT).mT
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (2.0315 * square @ square - 4.7750 * square) @ x
    return x


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal (Jordan et al., 2024), for matrices of one shape in each group. torch's
    own computes in bfloat16, which takes longer than the model's gradients on most CPUs."""

    def __init__(self, groups):
        super().__init__(groups, {"lr": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            matrices = group["params"]
            for p in matrices:
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                p.grad.lerp_(momentum.lerp_(p.grad, 0.05), 0.95)
            updates = orthogonal(torch.stack([p.grad for p in matrices]))
            rows, columns = matrices[0].shape
            scale = max(1, rows / columns) ** 0.5
            for p, update in zip(matrices, updates, strict=True):
                p.add_(update, alpha=-group["lr"] * scale)


def optimizers_of(model):
    """Muon for the layers' matrices, AdamW for the table of words and the norms."""
    by_shape, others = {}, []
    for name, p in model.named_parameters():
        matrix = p.ndim == 2 and "layers" in name
        (by_shape.setdefault(p.shape, []) if matrix else others).append(p)
    return [
        Muon([{"params": group} for group in by_shape.values()]),
        torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def train(model, blocks, held_out, steps, checkpoint):
    """The rates rise for WARM_UP steps and fall in a line to nothing."""
    optimizers = optimizers_of(model)
    parts, done = [model, *optimizers], 0
    if checkpoint.exists():
        done, states = torch.load(checkpoint, weights_only=True)
        for part, state in zip(parts, states, strict=True):
            part.load_state_dict(state)
    begin = time.monotonic()
    for step in range(done + 1, steps + 1):
        loss_of(model, blocks.rows(step)).backward()
        for optimizer, rate in zip(optimizers, RATES, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * min(step / WARM_UP, 1 - (step - 1) / steps)
            optimizer.step()
        model.zero_grad()
        if step % 25 == 0 or step == steps:
            torch.save((step, [part.state_dict() for part in parts]), checkpoint.with_suffix(".new"))
            checkpoint.with_suffix(".new").replace(checkpoint)
        if step % 100 == 0 or step == steps:
            seconds, loss = time.monotonic() - begin, held_out_loss(model, held_out)
            print(f"step {step}: held out {loss:.4f}, {seconds:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).with_name("tiny-python"))
    parser.add_argument("--steps", type=int, default=STEPS, help="fewer: a worse model")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    files = [(name, content.decode(errors="replace")) for name, content in data.files()]
    training = [text for name, text in files if not data.for_validation(name)]
    words = Words(training)
    held_out = held_out_rows([text for name, text in files if data.for_validation(name)], words)
    model = new_model()
    print(f"Python {platform.python_version()}: {len(training)} files, {sum(map(len, training))} characters")
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(held_out)} rows held out", flush=True)
    checkpoint = arguments.out.with_suffix(".training")
    train(model, Blocks(training, words), held_out, arguments.steps, checkpoint)

    model = model.half().float()  # what is saved is what is measured
    loss = held_out_loss(model, held_out)
    characters = sum(len(words.first.decode(row[1:].tolist())) for row in held_out)
    bits = loss * held_out[:, 1:].numel() / characters / math.log(2)
    print(f"held out, as float16: {loss:.4f} a token, {bits:.3f} bits a character")
    words.save(arguments.out)
    model.half().save_pretrained(arguments.out)
    checkpoint.unlink()


if __name__ == "__main__":
    main()
