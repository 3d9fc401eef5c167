"""DeBERTa-v3's disentangled attention, forward and backward: the gradients of q, k, v and of both
tables."""

from .base import (
    HEAD_DIM,
    HEADS,
    Case,
    Contender,
    Unavailable,
    forward_and_backward,
    leaf,
    with_dout,
)
from .deberta import (
    BUCKETS,
    MAX_RELATIVE,
    huggingface_config,
    huggingface_core,
    sdpa_dense_bias_core,
)
from .deberta import inputs as forward_inputs
from .none_backward import LENGTHS

NAMES = ("q", "k", "v", "pos_key", "pos_query")


def inputs(length):
    return with_dout(forward_inputs(length), seed=103)


def leaves(x):
    return {name: leaf(x[name]) for name in NAMES}


def locant(x):
    import locant.torch

    encoding = locant.torch.Deberta(heads=HEADS, head_dim=HEAD_DIM, position_buckets=BUCKETS,
                                    max_relative_positions=MAX_RELATIVE)
    t = leaves(x)
    encoding.pos_key.data, encoding.pos_query.data = t["pos_key"].data, t["pos_query"].data
    qkv = [t["q"], t["k"], t["v"]]
    return forward_and_backward(lambda: encoding(*qkv),
                                [*qkv, encoding.pos_key, encoding.pos_query], x["dout"])


def _timed(core_of, x, compiled=False):
    """core_of(t) -> (module, arguments), whose result is (B, L, H·d)."""
    import torch

    t = leaves(x)
    core, arguments = core_of(t)
    if compiled:
        core = torch.compile(core, dynamic=False)
    return forward_and_backward(lambda: core(**arguments)[0], [*t.values()], x["dout"],
                                heads_last=True)


def huggingface(x):
    return _timed(huggingface_core, x)


def huggingface_compile(x):
    return _timed(huggingface_core, x, compiled=True)


def sdpa_dense_bias(x):
    t = leaves(x)
    return forward_and_backward(sdpa_dense_bias_core(t), [*t.values()], x["dout"])


def _disentangled_flash(t):
    """(module, arguments) of the package's class for training, without its projections."""
    try:
        from disentangled_flash._torch import TorchTrainingDisentangledSelfAttention
    except ImportError as error:
        raise Unavailable(f"{error}; it is in bench/requirements.txt") from error

    class Core(TorchTrainingDisentangledSelfAttention):
        def _project_qkv(self, hidden_states):
            return t["q"], t["k"], t["v"]

        def _reshape_heads(self, heads_first, batch_size, sequence_length):
            return heads_first  # (B, H, L, d) already

        def _project_active_positions(self, rel_embeddings, active_slots):
            return [t[name].index_select(1, active_slots) for name in ("pos_key", "pos_query")]

    core = Core(huggingface_config(), assume_unpadded=True).eval()
    length = t["q"].shape[2]
    return core, {
        "hidden_states": t["q"].new_zeros(1, length, HEADS * HEAD_DIM),
        "attention_mask": t["q"].new_ones(1, length),
        "rel_embeddings": t["q"].new_zeros(1, 1),
    }


def disentangled_flash(x):
    return _timed(_disentangled_flash, x)


def disentangled_flash_compile(x):
    return _timed(_disentangled_flash, x, compiled=True)


CASE = Case(
    name="deberta_backward",
    title="DeBERTa-v3, forward and backward",
    inputs=inputs,
    lengths=LENGTHS,
    gradients=True,
    ours={"locant": Contender(locant)},
    peers={
        "huggingface": Contender(huggingface),
        "huggingface_compile": Contender(huggingface_compile, compiled=True,
                                         env={"PYTORCH_JIT": "0"}),
        "sdpa_dense_bias": Contender(sdpa_dense_bias),
        "disentangled_flash": Contender(disentangled_flash),
        "disentangled_flash_compile": Contender(disentangled_flash_compile, compiled=True),
    },
    not_measured={"flex": "FlexAttention has no backward on CPUs"},
)
