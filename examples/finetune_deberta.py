"""Fine-tuning a Hugging Face DeBERTa with locant's attention: locant.patch and nothing else.

    python examples/finetune_deberta.py [STEPS]

The model is small and random, made on the spot. It learns whether one word comes before another, which
only positions can tell. With from_pretrained(...) in place of the config, the rest stays as it is.
"""

import sys

import torch
import transformers

import locant

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
torch.manual_seed(0)
model = transformers.DebertaV2ForSequenceClassification(
    transformers.DebertaV2Config(
        vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, relative_attention=True, pos_att_type=["c2p", "p2c"],
        position_buckets=32, position_biased_input=False, share_att_key=True,
        norm_rel_ebd="layer_norm", initializer_range=0.1, num_labels=2,
    )
)  # fmt: skip
print(locant.patch(model))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def batch(size=64, length=8):
    """Texts with the words 1 and 2 somewhere; label 1: the word 1 comes first."""
    ids = torch.randint(3, 100, (size, length))
    places = torch.rand(size, length).argsort(dim=1)[:, :2]
    ids.scatter_(1, places, torch.tensor([[1, 2]]).expand(size, 2))
    return ids, (places[:, 0] < places[:, 1]).long()


model.train()
losses = []
for step in range(steps):
    ids, labels = batch()
    loss = model(ids, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if (step + 1) % 10 == 0:
        print(f"step {step + 1}: loss {sum(losses[-10:]) / 10:.3f}")

model.eval()
with torch.no_grad():
    ids, labels = batch(500)
    right = (model(ids).logits.argmax(dim=1) == labels).float().mean().item()
print(f"right on {100 * right:.0f} % of new texts; {locant.stats().fused_calls} calls of the kernel")
