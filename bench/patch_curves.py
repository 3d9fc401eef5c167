"""Loss curves of a small DeBERTa, as Hugging Face trains it and after locant.patch, as an SVG.

    python bench/patch_curves.py [docs/images/patch_losses.svg]

The same weights, the same batches, no dropout, 100 steps of AdamW. The label is the word at place 1,
modulo 4, which the first token learns through attention.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import transformers
from charts import STYLE

import locant

STEPS, BATCH, LENGTH, WORDS = 100, 32, 32, 11
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 56, 20, 44, 44


def batches():
    generator = torch.Generator().manual_seed(0)
    for _ in range(STEPS):
        ids = torch.randint(3, WORDS, (BATCH, LENGTH), generator=generator)
        lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1), generator=generator)
        mask = (torch.arange(LENGTH) < lengths).long()
        yield ids * mask, mask, (ids[:, 1] % 4)


def train(patched: bool) -> list[float]:
    torch.manual_seed(1)
    config = transformers.DebertaV2Config(
        vocab_size=WORDS, hidden_size=96, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=192, position_buckets=16, max_position_embeddings=64, num_labels=4,
        relative_attention=True, pos_att_type=["p2c", "c2p"], share_att_key=True,
        norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pooler_dropout=0.0,
    )  # fmt: skip
    model = transformers.DebertaV2ForSequenceClassification(config).train()
    if patched:
        locant.patch(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = []
    for ids, mask, labels in batches():
        optimizer.zero_grad()
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def draw(theirs: list[float], ours: list[float]) -> str:
    top = max(*theirs, *ours)
    apart = max(abs(a - b) for a, b in zip(theirs, ours, strict=True))

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / (STEPS - 1)

    def y(loss: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * loss / top

    def path(losses: list[float]) -> str:
        return "M" + "L".join(f"{x(i):.1f} {y(loss):.1f}" for i, loss in enumerate(losses))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="title" x="{LEFT}" y="24">Loss of a 2-layer DeBERTa: largest difference '
        f"{apart:.1e}</text>",
    ]
    for i in range(5):
        loss = top * i / 4
        parts.append(f'<path class="grid" d="M{LEFT} {y(loss):.1f}H{WIDTH - RIGHT}"/>')
        place = f'x="{LEFT - 8}" y="{y(loss) + 4:.1f}" text-anchor="end"'
        parts.append(f"<text {place}>{loss:.2f}</text>")
    for step in (0, 25, 50, 75, 99):
        place = f'x="{x(step):.1f}" y="{HEIGHT - 18}" text-anchor="middle"'
        parts.append(f"<text {place}>{step}</text>")
    # The wide line shows on both sides of the narrow one where they agree.
    wide, narrow = 'style="stroke-width:7;opacity:.45" stroke="#d55e00"', 'style="stroke-width:1.5"'
    bottom = HEIGHT - BOTTOM
    parts += [
        f'<path class="line" {wide} d="{path(theirs)}"/>',
        f'<path class="line ours" {narrow} d="{path(ours)}"/>',
        f'<text x="{LEFT + 12}" y="{bottom - 30}" style="fill:#d55e00">Hugging Face (wide)</text>',
        f'<text class="ours" x="{LEFT + 12}" y="{bottom - 12}">patched (narrow)</text></svg>',
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("svg", type=Path, nargs="?", default="docs/images/patch_losses.svg")
    target = parser.parse_args().svg
    torch.set_num_threads(1)  # the model is small
    theirs, ours = train(False), train(True)
    target.write_text(draw(theirs, ours))
    apart = max(abs(a - b) for a, b in zip(theirs, ours, strict=True))
    print(f"loss {theirs[0]:.3f} -> {theirs[-1]:.3f}, largest difference {apart:.2e}; {target}")


if __name__ == "__main__":
    main()
