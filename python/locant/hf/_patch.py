"""patch and unpatch: which modules of a model change, and how they change back."""

import copy

import torch

from locant.hf import _interface
from locant.hf._registry import families, family_of
from locant.hf._report import Refused, Replaced, Report
from locant.hf._state import State
from locant.torch._bindings import FLOATING

_STATE, _CONFIG = "_locant", "_locant_config"


def patch(model):
    """Makes a Hugging Face model, or whatever contains one, compute attention by locant.

    -> a locant.hf.Report; ValueError if nothing in the model can be replaced, with the reasons.
    """
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"[patch] model must be a torch.nn.Module, got {type(model).__name__}")
    replaced, refused, notes, seen = [], [], [], set()
    for name, module in list(model.named_modules()):
        family = family_of(type(module))
        if family is None or not isinstance(module, family.CONTAINERS):
            continue
        inside = [m for m in module.modules() if isinstance(m, family.ATTENTIONS)]
        seen.update(map(id, inside))
        class_name = _class_name(module)
        try:
            if not hasattr(module, _STATE):
                _replace(model, module, inside, family)
        except ValueError as error:
            refused.append(Refused(name, class_name, str(error)))
            continue
        replaced.append(Replaced(name, class_name, family.FAMILY, len(inside)))
        notes += getattr(family, "notes", lambda _: [])(module)
    refused += _others(model, seen)
    report = Report(tuple(replaced), tuple(refused), tuple(dict.fromkeys(notes)))
    if not replaced:
        known = ", ".join(families())
        raise ValueError(
            f"[patch] nothing to replace in {type(model).__name__}; known are transformers' {known}"
            + "".join(f"\n{line}" for line in str(report).splitlines())
        )
    return report


def unpatch(model):
    """Undoes patch: classes and configurations are the ones before. A model that is not patched
    stays as it is."""
    changed = {}
    for module in model.modules():
        state = module.__dict__.pop(_STATE, None)
        if state is not None:
            module.__class__ = state.original
        before = module.__dict__.pop(_CONFIG, None)
        if before is not None:
            changed[id(before)] = (before, module.config)
            module.config = before
    for before, after in changed.values():  # what was set since stays set
        name = before._attn_implementation_internal
        before.__dict__.update(after.__dict__)
        before._attn_implementation_internal = name


def _replace(model, container, attentions, family):
    """Changes a container and its attention modules, or raises ValueError and changes nothing."""
    _check(container, attentions, family)
    targets = {id(m): m for m in (container, *attentions)}
    targets.update({id(m): m for m in container.modules() if type(m) in family.PATCHED})
    try:
        for module in targets.values():
            cls = type(module)
            setattr(module, _STATE, State(cls))
            module.__class__ = family.PATCHED.get(cls, cls)
        for module in attentions:
            module._locant.key = family.prepare(container, module)
    except ValueError:
        for module in targets.values():
            state = module.__dict__.pop(_STATE, None)
            if state is not None:
                module.__class__ = state.original
        raise
    if getattr(family, "SWITCHES_CONFIG", False):
        _interface.register()
        _switch_config(model, container.config)


def _check(container, attentions, family):
    for module in (container, *attentions):
        wanted = family.CONTAINERS if module is container else family.ATTENTIONS
        if type(module) not in wanted:
            base = next(cls for cls in type(module).__mro__ if cls in wanted)
            raise ValueError(
                f"{type(module).__name__} is derived from {base.__name__} and may compute something "
                "else"
            )
    for name, x in container.named_parameters():
        if not x.is_cpu:
            raise ValueError(f"parameter {name} is on {x.device}, and locant runs on the CPU")
        if x.dtype not in FLOATING:
            raise ValueError(f"parameter {name} is {x.dtype}, which locant does not compute with")


def _switch_config(model, config):
    """Gives the modules that share this configuration a copy that names locant. Other models with
    the same configuration object are left alone."""
    switched = copy.copy(config)
    switched._attn_implementation_internal = _interface.NAME
    for module in model.modules():
        if getattr(module, "config", None) is config:
            setattr(module, _CONFIG, config)
            module.config = switched


def _others(model, seen):
    """Attention that no family was responsible for: the outermost modules of that name."""
    found = []
    for name, module in model.named_modules():
        cls = _class_name(module)
        if cls.endswith("Attention") and not seen.intersection(map(id, module.modules())):
            reason = "attention of no family that locant knows"
            family = family_of(type(module))
            if family is not None:
                outer = " or ".join(sorted(c.__name__ for c in family.CONTAINERS))
                reason = f"it is patched as part of {outer} only"
            found.append(Refused(name, cls, reason))
            seen.update(map(id, module.modules()))
    return found


def _class_name(module):
    state = module.__dict__.get(_STATE)
    return (type(module) if state is None else state.original).__name__
