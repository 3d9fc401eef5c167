"""RoPE beside transformers, whose angles are float32, and beside the same formulas in float64 torch.

A float32 angle p·θ is off by up to p·2^-24: 3e-5 at p = 500, 2e-2 at 2^20. Frequencies are compared
to the precision of float32, rotations to that of the angles; the float64 versions to the last digits.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import locant

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import (  # noqa: E402
    GPTNeoXConfig, LlamaConfig, PixtralVisionConfig, Qwen2VLTextConfig, Qwen3VLTextConfig,
)  # fmt: skip
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS  # noqa: E402
from transformers.models.gpt_neox import modeling_gpt_neox as gpt_neox  # noqa: E402
from transformers.models.gptj import modeling_gptj as gptj  # noqa: E402
from transformers.models.llama import modeling_llama as llama  # noqa: E402
from transformers.models.pixtral import modeling_pixtral as pixtral  # noqa: E402
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2_vl  # noqa: E402
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig  # noqa: E402
from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3_vl  # noqa: E402

HEADS, DIM = 4, 64
SHORT, LONG = list(np.linspace(1, 3, DIM // 2)), list(np.geomspace(1, 40, DIM // 2))
LENGTHS = [5, 1024, 1025, 4000]


@pytest.fixture(autouse=True)
def quiet_torch():
    torch.manual_seed(5)
    with torch.no_grad():
        yield


def float32_angles(position):
    """What angles in float32 do to numbers of about 4, up to this position."""
    return 4 * (position + 1) * 2.0**-24 * 1.5 + 2e-6


# --- frequencies of every kind -------------------------------------------------------------------

# kind -> (rope_parameters of transformers, fields of locant); L0 = max_position_embeddings = 1024
KINDS = {
    "default": ({}, {}),
    "default, base 5e5": ({"rope_theta": 5e5}, {"base": 5e5}),
    "linear": ({"factor": 4.0}, {"factor": 4.0}),
    "dynamic": ({"factor": 2.0}, {"factor": 2.0, "original_max_position": 1024}),
    "yarn": (
        {"factor": 4.0, "original_max_position_embeddings": 512},
        {"factor": 4.0, "original_max_position": 512},
    ),
    "yarn, mscale": (
        {"factor": 40.0, "original_max_position_embeddings": 512, "mscale": 1.0,
         "mscale_all_dim": 0.7, "beta_fast": 16, "beta_slow": 2, "truncate": False},
        {"factor": 40.0, "original_max_position": 512, "mscale": 1.0, "mscale_all_dim": 0.7,
         "beta_fast": 16.0, "beta_slow": 2.0, "truncate": False},
    ),
    "yarn, attention_factor": (
        {"factor": 4.0, "original_max_position_embeddings": 512, "attention_factor": 1.3},
        {"factor": 4.0, "original_max_position": 512, "attention_factor": 1.3},
    ),
    "llama3": (
        {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 5e5,
         "original_max_position_embeddings": 8192},
        {"factor": 8.0, "base": 5e5, "original_max_position": 8192},
    ),
    "longrope": (
        {"short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 1024,
         "factor": 16.0},
        {"short_factor": SHORT, "long_factor": LONG, "original_max_position": 1024,
         "factor": 16.0},
    ),
    "longrope, max_position": (
        {"short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 256},
        {"short_factor": SHORT, "long_factor": LONG, "original_max_position": 256,
         "max_position": 1024},
    ),
    "proportional": (
        {"factor": 2.0, "partial_rotary_factor": 0.3},
        {"factor": 2.0, "partial_rotary_factor": 0.3},
    ),
}  # fmt: skip


def llama_config(kind, **changes):
    kind_of_rope = kind.split(",")[0]
    parameters = {"rope_theta": 10000.0, **KINDS[kind][0], "rope_type": kind_of_rope, **changes}
    return LlamaConfig(
        hidden_size=HEADS * DIM, num_attention_heads=HEADS, head_dim=DIM,
        max_position_embeddings=1024, rope_parameters=parameters,
    )  # fmt: skip


def rope(kind, **fields):
    scaling = kind.split(",")[0].replace("default", "none")
    return locant.Rope(heads=HEADS, head_dim=DIM, scaling=scaling, **{**KINDS[kind][1], **fields})


def test_every_kind_of_transformers_is_compared():
    assert set(ROPE_INIT_FUNCTIONS) <= {kind.split(",")[0] for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_frequencies(record, kind):
    config, enc = llama_config(kind), rope(kind)
    for length in LENGTHS:
        if kind.startswith("default"):
            theirs, factor = llama.LlamaRotaryEmbedding.compute_default_rope_parameters(config)
        else:
            kind_of_rope = config.rope_parameters["rope_type"]
            theirs, factor = ROPE_INIT_FUNCTIONS[kind_of_rope](config, None, seq_len=length)
        ours = enc.frequencies(length)
        turning = np.asarray(theirs) != 0
        assert np.array_equal(turning, ours.theta != 0)
        ratio = ours.theta[turning] / np.asarray(theirs, np.float64)[turning]
        record(f"rope θ ratio, {kind}", ratio, 1, 1e-6)
        record(f"rope magnitude, {kind}", ours.magnitude, factor, 1e-12)


# --- rotation ------------------------------------------------------------------------------------


def turned_in_float64(x, enc, positions, length):
    """Half-split rotation with torch in float64, from θ alone. x (B, H, L, d), positions (L)."""
    theta, magnitude = enc.frequencies(length)
    angle = torch.as_tensor(positions, dtype=torch.float64)[:, None] * torch.from_numpy(theta)
    z = torch.polar(torch.full_like(angle, magnitude), angle)
    rot = 2 * len(theta)
    pairs = torch.complex(x[..., : rot // 2].double(), x[..., rot // 2 : rot].double()) * z
    return torch.cat([pairs.real, pairs.imag, x[..., rot:].double()], -1)


@pytest.mark.parametrize("kind", KINDS)
def test_rotation_like_llama(record, kind):
    """dynamic and longrope change with the longest position of a call, here the same for all."""
    enc, module = rope(kind), llama.LlamaRotaryEmbedding(llama_config(kind))
    for length in (300, 1100):
        q, k = torch.randn(2, HEADS, length, DIM), torch.randn(2, 1, length, DIM)
        cos, sin = module(q, torch.arange(length)[None])
        theirs = llama.apply_rotary_pos_emb(q, k, cos, sin)
        for ours, their, x in zip((enc.rotate(q), enc.rotate(k)), theirs, (q, k), strict=True):
            record("Llama apply_rotary_pos_emb", ours, their, float32_angles(length))
            exact = turned_in_float64(x, enc, range(length), length)
            record("rope float32 beside float64 torch", ours, exact, 1.5e-6)
            record("rope float64 beside float64 torch", enc.rotate(x.double()), exact, 2e-12)


def test_rotation_like_gptj(record):
    """Interleaved pairs, and only the first 32 of 64 columns."""
    enc = locant.Rope(
        heads=HEADS, head_dim=DIM, layout="interleaved", partial_rotary_factor=0.5
    )
    length, rot = 400, DIM // 2
    table = gptj.create_sinusoidal_positions(length, rot)
    sin, cos = torch.split(table[None], rot // 2, dim=-1)
    x = torch.randn(2, length, HEADS, DIM)  # (B, L, H, d)
    turned = gptj.apply_rotary_pos_emb(x[..., :rot], sin, cos)
    theirs = torch.cat([turned, x[..., rot:]], -1)
    ours = enc.rotate(x.transpose(1, 2)).transpose(1, 2)
    record("GPT-J rotation", ours, theirs, float32_angles(length))


def test_rotation_like_gpt_neox(record):
    """A quarter of the columns, half-split within it."""
    config = GPTNeoXConfig(
        hidden_size=HEADS * DIM, num_attention_heads=HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25},
    )  # fmt: skip
    enc = locant.Rope(heads=HEADS, head_dim=DIM, partial_rotary_factor=0.25)
    length = 300
    q, k = torch.randn(2, HEADS, length, DIM), torch.randn(2, HEADS, length, DIM)
    cos, sin = gpt_neox.GPTNeoXRotaryEmbedding(config)(q, torch.arange(length)[None])
    theirs = gpt_neox.apply_rotary_pos_emb(q, k, cos, sin)
    for ours, their in zip((enc.rotate(q), enc.rotate(k)), theirs, strict=True):
        record("GPT-NeoX apply_rotary_pos_emb", ours, their, float32_angles(length))


@pytest.mark.parametrize("position", [1000, 8192, 2**20, 2**24, 2**30])
def test_angles_are_exact_where_float32_is_not(record, position):
    enc = rope("default")
    x = torch.ones(1, HEADS, 3, DIM)
    ours = enc.rotate(x, start=position)
    theta = [10000 ** (-2 * t / DIM) for t in range(DIM // 2)]
    for i in range(3):
        # fmod of the exact product of two doubles, as a rational number
        exact = [_reduced_angle(position + i, t) for t in theta]
        wanted = [math.cos(a) - math.sin(a) for a in exact] + [
            math.cos(a) + math.sin(a) for a in exact
        ]
        record("rope at positions up to 2^30", ours[0, 0, i], wanted, 2e-7)


def _reduced_angle(position, theta):
    two_pi = Fraction(6283185307179586476925286766559005768394, 10**39)
    return float(Fraction(theta) * position % two_pi)


# --- positions with axes -------------------------------------------------------------------------


def grid_positions(length, batch):
    """Text, then a 5 x 7 image at several times, then text: (3, B, L)."""
    ids = torch.arange(length).expand(3, batch, length).clone()
    for n in range(105):
        ids[0, :, 20 + n] = 20 + n // 35
        ids[1, :, 20 + n] = 20 + n // 7 % 5
        ids[2, :, 20 + n] = 20 + n % 7
    ids[:, 1:] += 3
    return ids


@pytest.mark.parametrize("family", ["Qwen2-VL", "Qwen3-VL"])
def test_sections_like(record, family):
    length, sections = 150, [8, 12, 12] if family == "Qwen2-VL" else [12, 10, 10]
    layout = "contiguous" if family == "Qwen2-VL" else "interleaved"
    parameters = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}
    sizes = dict(hidden_size=HEADS * DIM, num_attention_heads=HEADS, num_key_value_heads=2)
    if family == "Qwen2-VL":
        config = Qwen2VLTextConfig(**sizes, rope_parameters=parameters)
        module, library = qwen2_vl.Qwen2VLRotaryEmbedding(config), qwen2_vl
    else:
        config = Qwen3VLTextConfig(**sizes, head_dim=DIM, rope_parameters=parameters)
        module, library = qwen3_vl.Qwen3VLTextRotaryEmbedding(config), qwen3_vl
    enc = locant.Rope(
        heads=HEADS, head_dim=DIM, base=1e6, axes="sections", sections=sections,
        sections_layout=layout,
    )  # fmt: skip
    q, k, v = (torch.randn(2, h, length, DIM) for h in (HEADS, 2, 2))
    ids = grid_positions(length, 2)
    cos, sin = module(q, ids)
    q_theirs, k_theirs = library.apply_rotary_pos_emb(q, k, cos, sin)
    ours = ids.permute(1, 2, 0)  # (B, L, axes)
    record(f"{family} rotation", enc.rotate(q, positions=ours), q_theirs, float32_angles(length))
    record(f"{family} rotation", enc.rotate(k, positions=ours), k_theirs, float32_angles(length))

    before = locant.stats()
    attended = locant.attention(q, k, v, enc, q_positions=ours, k_positions=ours, causal=True)
    assert locant.stats().fused_calls == before.fused_calls + 1, "ids must keep the fused path"
    theirs = torch.nn.functional.scaled_dot_product_attention(
        q_theirs, k_theirs.repeat_interleave(2, 1), v.repeat_interleave(2, 1), is_causal=True
    )
    record(f"{family} attention", attended, theirs, 2e-5)


def test_two_axes_like_pixtral(record):
    config = PixtralVisionConfig(
        hidden_size=HEADS * DIM, num_attention_heads=HEADS, image_size=256, patch_size=16,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
    )  # fmt: skip
    module = pixtral.PixtralVisionRotaryEmbedding(config)
    enc = locant.Rope(heads=HEADS, head_dim=DIM, axes="2d_alternating")
    rows, columns = 9, 13
    h, w = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    pairs = torch.stack([h.flatten(), w.flatten()], -1)  # (L, 2)
    q, k = (torch.randn(1, HEADS, rows * columns, DIM) for _ in range(2))
    cos, sin = module(q, pairs)
    theirs = pixtral.apply_rotary_pos_emb(q, k, cos[None], sin[None])
    for ours, their in zip(
        (enc.rotate(x, positions=pairs[None]) for x in (q, k)), theirs, strict=True
    ):
        record("Pixtral rotation", ours, their, float32_angles(16))


def test_two_axes_like_qwen2_vl_vision(record):
    config = Qwen2VLVisionConfig(embed_dim=HEADS * DIM, num_heads=HEADS)
    module = qwen2_vl.Qwen2VLVisionRotaryEmbedding(config)
    enc = locant.Rope(heads=HEADS, head_dim=DIM, axes="2d_split")
    h, w = torch.meshgrid(torch.arange(9), torch.arange(13), indexing="ij")
    pairs = torch.stack([h.flatten(), w.flatten()], -1)  # (L, 2)
    q, k = (torch.randn(len(pairs), HEADS, DIM) for _ in range(2))  # (L, H, d)
    cos, sin = module(q, pairs)
    theirs = qwen2_vl.apply_rotary_pos_emb_vision(q, k, cos, sin)
    for x, their in zip((q, k), theirs, strict=True):
        ours = enc.rotate(x.transpose(0, 1)[None], positions=pairs[None])[0].transpose(0, 1)
        record("Qwen2-VL vision rotation", ours, their, float32_angles(16))


# --- xPos, which transformers does not have ------------------------------------------------------


def test_xpos_scores_fade_with_the_distance(record, rng):
    """Sun et al. 2022: the score of pair t is multiplied by ζ_t^((m-n)/512)."""
    length = 700
    enc = locant.Rope(heads=1, head_dim=8, scaling="xpos")
    q, k = (rng.standard_normal((1, 1, length, 8)) for _ in range(2))
    theta = 10000.0 ** (-np.arange(4) / 4)
    zeta = (np.arange(4) / 4 + 0.4) / 1.4
    m_n = np.arange(length)[:, None] - np.arange(length)[None, :]
    zq, zk = (x[0, 0, :, :4] + 1j * x[0, 0, :, 4:] for x in (q, k))
    wanted = sum(
        (np.outer(zq[:, t], zk[:, t].conj()) * np.exp(1j * theta[t] * m_n)).real
        * zeta[t] ** (m_n / 512)
        for t in range(4)
    ) / np.sqrt(8)
    content = locant.scores(q, k, enc)["content"][0, 0]
    size = np.maximum(1, zeta[0] ** (m_n / 512))
    record("xpos scores", content / size, wanted / size, 1e-12)


# --- the Python interface ------------------------------------------------------------------------


def test_attention_rotates_as_rotate_does(record, rng):
    enc = locant.Rope(heads=HEADS, head_dim=DIM, partial_rotary_factor=0.5)
    plain = locant.NoEncoding(heads=HEADS, head_dim=DIM)
    q, k, v = (rng.standard_normal((2, HEADS, 90, DIM)) for _ in range(3))
    ids = rng.integers(-50, 5000, (2, 90))
    rotated = [enc.rotate(x, positions=ids) for x in (q, k)]
    ours = locant.attention(q, k, v, enc, q_positions=ids, k_positions=ids)
    assert np.array_equal(ours, locant.attention(*rotated, v, plain))


def test_in_place_and_back(rng):
    enc = locant.Rope(heads=HEADS, head_dim=DIM)
    x = rng.standard_normal((2, 50, HEADS, DIM)).astype(np.float32).transpose(0, 2, 1, 3)
    before, new = x.copy(), enc.rotate(x, start=7)
    assert np.array_equal(x, before) and not np.array_equal(new, before)
    assert enc.rotate(x, start=7, out=x) is x and np.array_equal(x, new)
    enc.rotate(x, start=7, inverse=True, out=x)
    np.testing.assert_allclose(x, before, atol=1e-6)


def test_wrong_arguments_are_named(rng):
    enc = locant.Rope(heads=2, head_dim=8)
    x = np.zeros((1, 2, 5, 8), np.float32)
    with pytest.raises(ValueError, match=r"\[rope\] positions has shape \(1, 4\) but must be"):
        enc.rotate(x, positions=[0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"\[rope\] side must be 'q' or 'k', got 'v'"):
        enc.rotate(x, side="v")
    with pytest.raises(ValueError, match=r"x.* i64"):
        enc.rotate(x.astype(np.int64))
    with pytest.raises(ValueError, match=r"\[rope\] out must be x itself or apart"):
        enc.rotate(x[:, :, 1:], out=x[:, :, :-1])
    ids = np.zeros((1, 5, 3), int)
    with pytest.raises(ValueError, match=r"\[rope\] q_positions has shape .* but 1 is needed"):
        locant.attention(x, x, x, enc, q_positions=ids)
    with pytest.raises(ValueError, match=r"\[shaw\] k_positions has shape .* but 1 is needed"):
        locant.attention(x, x, x, locant.Shaw(heads=2, head_dim=8), k_positions=ids)
    with pytest.raises(ValueError, match=r"\[rope\] factor must be finite and > 0, got -1"):
        locant.Rope(scaling="linear", factor=-1.0)
