"""BERT, RoBERTa and models with their code: absolute positions, so plain attention."""

from transformers.models.bert import modeling_bert
from transformers.models.camembert import modeling_camembert
from transformers.models.electra import modeling_electra
from transformers.models.roberta import modeling_roberta
from transformers.models.xlm_roberta import modeling_xlm_roberta

FAMILY = "BERT/RoBERTa"
CONTAINERS = (
    modeling_bert.BertModel,
    modeling_camembert.CamembertModel,
    modeling_electra.ElectraModel,
    modeling_roberta.RobertaModel,
    modeling_xlm_roberta.XLMRobertaModel,
)
ATTENTIONS = (
    modeling_bert.BertSelfAttention,
    modeling_bert.BertCrossAttention,
    modeling_camembert.CamembertSelfAttention,
    modeling_camembert.CamembertCrossAttention,
    modeling_electra.ElectraSelfAttention,
    modeling_electra.ElectraCrossAttention,
    modeling_roberta.RobertaSelfAttention,
    modeling_roberta.RobertaCrossAttention,
    modeling_xlm_roberta.XLMRobertaSelfAttention,
    modeling_xlm_roberta.XLMRobertaCrossAttention,
)
PATCHED = {}  # they ask transformers' registry, see _interface.py
SWITCHES_CONFIG = True


def prepare(container, _attention):
    """Nothing; raises ValueError if the model is not what its configuration says."""
    kind = getattr(container.config, "position_embedding_type", "absolute")
    if kind not in ("absolute", None):
        import transformers

        raise ValueError(
            f"position_embedding_type={kind!r} is not computed by transformers "
            f"{transformers.__version__}, which treats it as 'absolute': the model does not do what "
            "its checkpoint was trained for"
        )
