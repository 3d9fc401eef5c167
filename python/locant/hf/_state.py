"""What a patched module keeps beside its own attributes, and tables made from weights."""

import torch

_PURE = (torch.nn.Linear, torch.nn.LayerNorm, torch.nn.Embedding)


class State:
    """The attribute _locant of a patched module."""

    def __init__(self, original, key=None):
        self.original = original  # the class to go back to
        self.key = key  # the encoding's specification, if it has one
        self._tables = None  # (what they were made from, tables)

    def __getstate__(self):
        return {**self.__dict__, "_tables": None}

    def forget(self):
        """Drops the tables."""
        self._tables = None

    def tables(self, make, modules, inputs=(), training=False):
        """make() or its last result, if that was made without gradients from the same memory with
        the same version counters: torch counts every write to a tensor.

        modules     what make() calls: their parameters are watched
        inputs      tensors that make() reads besides
        training    make() is random
        """
        if training or torch.compiler.is_compiling() or not all(map(_is_pure, modules)):
            return make()
        sources = [p for module in modules for p in module._parameters.values() if p is not None]
        sources += inputs
        records = torch.is_grad_enabled() and any(x.requires_grad for x in sources)
        if records or any(x.is_inference() for x in sources):  # these have no counter
            return make()
        stamp = (_autocast(), [(x.data_ptr(), x._version) for x in sources])
        kept = self._tables
        if kept is None or kept[0] != stamp:
            # Tensors made in inference mode could neither be counted nor used outside of it. The
            # sources are kept: their memory cannot become another tensor's while it is compared.
            with torch.inference_mode(False), torch.no_grad():
                kept = (stamp, make(), [x.detach() for x in sources])
            self._tables = kept
        return kept[1]


def _is_pure(module):
    """Whether its result depends on its parameters and input alone."""
    return type(module) in _PURE and not module._forward_hooks and not module._forward_pre_hooks


def _autocast():
    return torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu")


class Encoded:
    """An encoding as locant.torch.attention takes it: a specification and its parameters."""

    def __init__(self, key, *parameters):
        self._key = key
        self._tensors = list(parameters)

    def _op_parameters(self):
        return self._tensors
