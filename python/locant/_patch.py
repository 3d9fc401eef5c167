"""locant.patch and unpatch: torch and transformers are imported when they are called."""


def patch(model):
    """Makes a Hugging Face model compute attention by locant: the same numbers, faster.

    model       a model of transformers, or any torch.nn.Module that contains one: DeBERTa v1, v2 and
                v3, T5, mT5, UMT5, MPNet, XLNet, BERT, RoBERTa, Llama and their like

    Returns a report of what was replaced and what was not, with reasons; print it. A model in which
    nothing can be replaced is a ValueError. Everything works as before: training, gradient
    checkpointing, torch.compile, saving. output_attentions=True takes the model's own path. That
    locant ran shows in locant.stats().fused_calls.
    """
    from locant import hf

    return hf.patch(model)


def unpatch(model):
    """Undoes locant.patch: model is as it was before, with the weights that it has now."""
    from locant import hf

    hf.unpatch(model)
