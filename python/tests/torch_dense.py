"""Every encoding's attention with whole matrices in torch, to be differentiated by autograd.

attention(enc, weights, q, k, v): q (B, H, Lq, d), k and v
(B, H, Lk, d), delta[i, j] = pos(j) - pos(i). Buckets are those of transformers' own functions.
"""

import math

import torch


def attention(enc, weights, q, k, v, *, q_start=0, causal=False, segments=None, keep=None):
    """enc: a locant encoding, of which only fields are read; weights: tensors by name."""
    fields = enc.fields()
    q_pos = torch.arange(q.shape[2]) + q_start
    k_pos = torch.arange(k.shape[2])
    delta = k_pos[None, :] - q_pos[:, None]
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    score = SCORES[enc.name](fields, weights, q, k, delta, segments, (q_pos, k_pos))
    if causal:
        score = score.masked_fill(delta > 0, -math.inf)
    probability = score.softmax(-1)
    if keep is not None:
        probability = probability * keep
    out = probability @ v
    if enc.name == "shaw" and fields["values"]:
        rows = weights["values"][_shaw_rows(fields, delta)]  # (Lq, Lk, d)
        out = out + torch.einsum("bhij,ijd->bhid", probability, rows)
    return out


def _product(q, k):
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])


def _plain(fields, weights, q, k, delta, segments, positions):
    return _product(q, k)


def _t5(fields, weights, q, k, delta, segments, positions):
    from transformers.models.t5.modeling_t5 import T5Attention

    bucket = T5Attention._relative_position_bucket(
        delta, fields["bidirectional"], fields["num_buckets"], fields["max_distance"]
    )
    return fields["scale"] * q @ k.transpose(-1, -2) + weights["bias"][bucket].permute(2, 0, 1)


def _alibi(fields, weights, q, k, delta, segments, positions):
    heads = q.shape[1]
    assert heads & (heads - 1) == 0, "the paper's slopes for a power of two"
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)
    return _product(q, k) - slopes[:, None, None] * delta.abs()


def _kerple(fields, weights, q, k, delta, segments, positions):
    r1, r2 = (weights[n].clamp(min=0.01)[:, None, None] for n in ("r1", "r2"))
    return _product(q, k) - r1 * torch.log(1 + r2 * delta.abs())


def _shaw_rows(fields, delta):
    reach = fields["max_distance"]
    return (-delta if fields["reversed"] else delta).clamp(-reach, reach) + reach


def _shaw(fields, weights, q, k, delta, segments, positions):
    rows = weights["keys"][_shaw_rows(fields, delta)]  # (Lq, Lk, d)
    score = q @ k.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", q, rows)
    if fields["key_query"]:
        score = score + torch.einsum("bhjd,ijd->bhij", k, rows)
    return score / math.sqrt(q.shape[-1])


def _sinusoids(r, width):
    frequency = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = r.double()[..., None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=-1)  # (Lq, Lk, width)


def _relative(weights, q, k, projected):
    """projected (Lq, Lk, H, d): W_R·R_r of each pair"""
    content = (q + weights["r_w_bias"][:, None]) @ k.transpose(-1, -2)
    position = torch.einsum("bhid,ijhd->bhij", q + weights["r_r_bias"][:, None], projected)
    return content + position


def _transformer_xl(fields, weights, q, k, delta, segments, positions):
    r = -delta
    if fields["clamp_len"] > 0:
        r = r.clamp(max=fields["clamp_len"])
    sinusoids = _sinusoids(r, weights["r_net"].shape[1])
    projected = (sinusoids @ weights["r_net"].T).unflatten(-1, (q.shape[1], q.shape[3]))
    return _relative(weights, q, k, projected) / math.sqrt(q.shape[-1])


def _xlnet(fields, weights, q, k, delta, segments, positions):
    r = -delta
    if fields["clamp_len"] > 0:
        r = r.clamp(-fields["clamp_len"], fields["clamp_len"])
    sinusoids = _sinusoids(r, weights["r"].shape[0])
    score = _relative(weights, q, k, torch.einsum("ijm,mhd->ijhd", sinusoids, weights["r"]))
    if segments is not None:
        q_ids, k_ids = segments  # (B, Lq), (B, Lk)
        other = (q_ids[:, :, None] != k_ids[:, None, :]).long()
        rows = weights["seg_embed"][other]  # (B, Lq, Lk, H, d)
        query = q + weights["r_s_bias"][:, None]
        score = score + torch.einsum("bhid,bijhd->bhij", query, rows)
    return score / math.sqrt(q.shape[-1])


def _deberta(fields, weights, q, k, delta, segments, positions):
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    buckets, reach = fields["position_buckets"], fields["max_relative_positions"]
    r = -delta
    if buckets > 0:
        r = make_log_bucket_position(r, buckets, reach).long()
    span = buckets or reach
    slot = (r + span).clamp(0, 2 * span - 1)
    score, terms = q @ k.transpose(-1, -2), 1
    if fields["c2p"]:
        score = score + torch.einsum("bhid,hijd->bhij", q, weights["pos_key"][:, slot])
    if fields["p2c"]:
        score = score + torch.einsum("bhjd,hijd->bhij", k, weights["pos_query"][:, slot])
    if fields["p2p"]:
        score = score + (weights["pos_query"] * weights["pos_key"]).sum(-1)[:, slot]
    terms += fields["c2p"] + fields["p2c"] + fields["p2p"]
    return score / math.sqrt(q.shape[-1] * terms)


def _rope(fields, weights, q, k, delta, segments, positions):
    half = q.shape[-1] // 2

    def turned(x, position):
        theta = fields["base"] ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = position.double()[:, None] * theta
        a, b = x[..., :half], x[..., half:]
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    return _product(turned(q, positions[0]), turned(k, positions[1]))


SCORES = {
    "none": _plain,
    "sinusoidal": _plain,
    "learned": _plain,
    "t5": _t5,
    "alibi": _alibi,
    "kerple": _kerple,
    "shaw": _shaw,
    "transformer_xl": _transformer_xl,
    "xlnet": _xlnet,
    "deberta": _deberta,
    "rope": _rope,
}
