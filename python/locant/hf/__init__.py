"""Hugging Face models with locant's fused attention: locant.patch and locant.unpatch.

One file per family; _registry says which classes of transformers belong to which. A model's own
code stays in charge of everything but attention: patching changes the class of the modules that
compute attention or prepare its masks, and unpatching changes it back.
"""

from locant.hf._patch import patch, unpatch
from locant.hf._report import Refused, Replaced, Report

__all__ = ["Refused", "Replaced", "Report", "patch", "unpatch"]
