"""Which file here handles which models of transformers, by the folder of their code."""

import importlib

_FILES = {
    "deberta": "deberta",
    "deberta_v2": "deberta_v2",
    "t5": "t5",
    "mt5": "t5",
    "umt5": "umt5",
    "mpnet": "mpnet",
    "xlnet": "xlnet",
    "bert": "bert",
    "roberta": "bert",
    "xlm_roberta": "bert",
    "camembert": "bert",
    "electra": "bert",
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "llama",
    "qwen3": "llama",
    "gemma": "llama",
}


def family_of(cls):
    """The module of this package for a class of transformers or one derived from it; or None."""
    for base in cls.__mro__:
        parts = base.__module__.split(".")
        if parts[:2] == ["transformers", "models"] and parts[2] in _FILES:
            return importlib.import_module(f"locant.hf.{_FILES[parts[2]]}")
    return None


def families():
    """The folders' names, for messages."""
    return tuple(_FILES)
