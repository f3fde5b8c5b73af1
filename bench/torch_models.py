"""Published architectures of PyTorch with random weights, in widths or depths that a small machine trains.

Every kind of block is whole; where the published model is deep, there are fewer of them. Nothing is
downloaded. Dropout is off, so that two runs can be compared.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

#: A module, and what it is called with, by name or in order.
Made = tuple[Any, tuple[Any, ...], dict[str, Any]]

#: Rows of pictures and texts in a call, and tokens of a text.
BATCH, TOKENS, WORDS = 2, 32, 512


class Architecture(NamedTuple):
    """One model: its name in tables, the package that has it, and what makes it."""

    name: str
    package: str
    make: Callable[[], Made]

    @property
    def is_there(self) -> bool:
        return importlib.util.find_spec(self.package) is not None


def without_dropout(model: Any) -> Any:
    """The model, with each probability of leaving something out at 0."""
    for module in model.modules():
        if "Drop" in type(module).__name__ or "StochasticDepth" in type(module).__name__:
            module.p = 0.0
        for key, value in vars(module).items():
            if "drop" in key and isinstance(value, float):
                setattr(module, key, 0.0)
    return model


def without_zeros(model: Any) -> Any:
    """The model, with random numbers for a parameter of zeros: a last layer of zeros would hide the rest."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.02)
    return model


def _pictures(size: int, channels: int = 3) -> Any:
    import torch

    return torch.randn(BATCH, channels, size, size)


# ---- torchvision ----


def declare_operators() -> None:
    """So that torchvision can be imported where it was built for GPUs, and PyTorch was not: its operators do
    not load, and it asks for the schemas of two. timm and transformers import it too.
    """
    import torch

    try:
        import torchvision  # noqa: F401
    except ImportError:
        return
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )


def _vision(name: str, size: int = 64, family: str = "", **how: Any) -> Architecture:
    def make() -> Made:
        from torchvision import models

        place = getattr(models, family) if family else models
        options = {"weights": None, **how}
        if family == "segmentation":
            options["weights_backbone"] = None
        x = _pictures(size)
        if family == "video":
            x = x.unsqueeze(2).repeat(1, 1, 4, 1, 1)
        return getattr(place, name)(**options), (x,), {}

    return Architecture(name, "torchvision", make)


VISION = [
    _vision("alexnet"),
    _vision("vgg11_bn"),
    _vision("resnet18"),
    _vision("resnet50"),
    _vision("resnext50_32x4d"),
    _vision("wide_resnet50_2"),
    _vision("densenet121"),
    _vision("googlenet", aux_logits=False, init_weights=False),
    _vision("inception_v3", 96, aux_logits=False, init_weights=False),
    _vision("mobilenet_v2"),
    _vision("mobilenet_v3_small"),
    _vision("shufflenet_v2_x1_0"),
    _vision("squeezenet1_1"),
    _vision("mnasnet1_0"),
    _vision("efficientnet_b0"),
    _vision("efficientnet_v2_s"),
    _vision("regnet_y_400mf"),
    _vision("convnext_tiny"),
    _vision("vit_b_16", 64, image_size=64),
    _vision("swin_t"),
    _vision("maxvit_t", 224, input_size=(224, 224)),
    _vision("fcn_resnet50", family="segmentation"),
    _vision("deeplabv3_mobilenet_v3_large", family="segmentation"),
    _vision("lraspp_mobilenet_v3_large", family="segmentation"),
    _vision("r3d_18", 32, family="video"),
]

# ---- timm ----


def _timm(name: str, size: int = 64, **how: Any) -> Architecture:
    def make() -> Made:
        import timm

        return timm.create_model(name, pretrained=False, **how), (_pictures(size),), {}

    return Architecture(name, "timm", make)


TIMM = [
    _timm("vit_tiny_patch16_224", img_size=64, depth=4),
    _timm("deit_tiny_distilled_patch16_224", img_size=64, depth=4),
    _timm("beit_base_patch16_224", img_size=64, depth=2),
    _timm("eva02_tiny_patch14_224", 56, img_size=56, depth=2),
    _timm("cait_xxs24_224", img_size=64, depth=2),
    _timm("xcit_nano_12_p16_224", img_size=64, depth=2),
    _timm("mixer_s32_224", img_size=64),
    _timm("resmlp_12_224", img_size=64),
    _timm("convnextv2_atto"),
    _timm("swinv2_cr_tiny_224", img_size=64, window_size=4),
    _timm("poolformer_s12"),
    _timm("mobilevit_s"),
    _timm("efficientformer_l1", 224),
    _timm("ghostnet_100"),
    _timm("repvgg_a0"),
    _timm("levit_128s", 224),
    _timm("hrnet_w18_small"),
    _timm("fastvit_t8"),
    _timm("nf_resnet50"),
    _timm("regnetx_002"),
]

# ---- transformers ----


def _ids(count: int = TOKENS) -> Any:
    import torch

    return torch.randint(3, WORDS, (BATCH, count))


def _text() -> dict[str, Any]:
    return {"input_ids": _ids()}


def _text_pairs() -> dict[str, Any]:
    return {"input_ids": _ids(), "decoder_input_ids": _ids(16)}


def _picture_input(size: int = 64) -> Callable[[], dict[str, Any]]:
    return lambda: {"pixel_values": _pictures(size)}


def _sound() -> dict[str, Any]:
    import torch

    return {"input_values": torch.randn(BATCH, 4000)}


def _whisper() -> dict[str, Any]:
    import torch

    return {"input_features": torch.randn(BATCH, 80, 64), "decoder_input_ids": _ids(16)}


def _clip() -> dict[str, Any]:
    return {**_text(), **_picture_input()()}


def _hugging(
    name: str, model: str, inputs: Callable[[], dict[str, Any]] = _text, config: str = "", **how: Any
) -> Architecture:
    """A model of transformers: made from a configuration of its own, with these values."""

    def make() -> Made:
        import transformers

        kind = getattr(transformers, model)
        options = {"attn_implementation": "sdpa", **how} if how.pop("sdpa", True) else how
        chosen = getattr(transformers, config) if config else kind.config_class
        made = chosen(**options)
        for key in ("use_cache",):
            if hasattr(made, key):
                setattr(made, key, False)
        return kind(made), (), inputs()

    return Architecture(name, "transformers", make)


_ENCODER: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
_DECODER: dict[str, Any] = {**_ENCODER, "num_key_value_heads": 2, "pad_token_id": 0}
_PICTURE: dict[str, Any] = {
    "hidden_size": 192,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 768,
    "image_size": 64,
}
_SPEECH: dict[str, Any] = {**_ENCODER, "mask_time_prob": 0.0, "apply_spec_augment": False, "layerdrop": 0.0}

HUGGING = [
    _hugging("BERT", "BertForMaskedLM", **_ENCODER),
    _hugging("RoBERTa", "RobertaForMaskedLM", **_ENCODER),
    _hugging("DistilBERT", "DistilBertForMaskedLM", vocab_size=WORDS, dim=256, n_layers=3, n_heads=4),
    _hugging("ALBERT", "AlbertForMaskedLM", **_ENCODER, embedding_size=64),
    _hugging("ELECTRA", "ElectraForMaskedLM", **_ENCODER, embedding_size=128),
    _hugging(
        "DeBERTa v2",
        "DebertaV2ForMaskedLM",
        **_ENCODER,
        sdpa=False,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=32,
    ),
    _hugging("MPNet", "MPNetForMaskedLM", **_ENCODER, sdpa=False),
    _hugging(
        "ModernBERT",
        "ModernBertForMaskedLM",
        **_ENCODER,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
        cls_token_id=1,
        sep_token_id=1,
    ),
    _hugging("GPT-2", "GPT2LMHeadModel", vocab_size=WORDS, n_embd=256, n_layer=3, n_head=4),
    _hugging(
        "GPT-Neo",
        "GPTNeoForCausalLM",
        vocab_size=WORDS,
        hidden_size=256,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        sdpa=False,
    ),
    _hugging("GPT-NeoX", "GPTNeoXForCausalLM", **_ENCODER),
    _hugging(
        "GPT-J",
        "GPTJForCausalLM",
        vocab_size=WORDS,
        n_embd=256,
        n_layer=2,
        n_head=4,
        rotary_dim=32,
        sdpa=False,
    ),
    _hugging(
        "OPT",
        "OPTForCausalLM",
        vocab_size=WORDS,
        hidden_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        ffn_dim=1024,
        word_embed_proj_dim=256,
    ),
    _hugging("Llama", "LlamaForCausalLM", **_DECODER),
    _hugging("Mistral", "MistralForCausalLM", **_DECODER, sliding_window=16),
    _hugging("Mixtral", "MixtralForCausalLM", **_DECODER, num_local_experts=4, num_experts_per_tok=2),
    _hugging("Qwen2", "Qwen2ForCausalLM", **_DECODER),
    _hugging("Qwen3", "Qwen3ForCausalLM", **_DECODER, head_dim=64),
    _hugging("Gemma", "GemmaForCausalLM", **_DECODER, head_dim=64),
    _hugging("Gemma 2", "Gemma2ForCausalLM", **_DECODER, head_dim=64, sdpa=False),
    _hugging("Phi", "PhiForCausalLM", **_DECODER),
    _hugging(
        "Falcon",
        "FalconForCausalLM",
        vocab_size=WORDS,
        hidden_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
    ),
    _hugging("BLOOM", "BloomForCausalLM", vocab_size=WORDS, hidden_size=256, n_layer=3, n_head=4, sdpa=False),
    _hugging("MPT", "MptForCausalLM", vocab_size=WORDS, d_model=256, n_layers=3, n_heads=4, sdpa=False),
    _hugging("StarCoder2", "Starcoder2ForCausalLM", **_DECODER),
    _hugging("Mamba", "MambaForCausalLM", vocab_size=WORDS, hidden_size=128, num_hidden_layers=2, sdpa=False),
    _hugging(
        "Mamba 2",
        "Mamba2ForCausalLM",
        vocab_size=WORDS,
        hidden_size=128,
        num_hidden_layers=2,
        num_heads=4,
        head_dim=64,
        n_groups=1,
        chunk_size=16,
        sdpa=False,
    ),
    _hugging("RWKV", "RwkvForCausalLM", vocab_size=WORDS, hidden_size=128, num_hidden_layers=2, sdpa=False),
    _hugging(
        "T5",
        "T5ForConditionalGeneration",
        _text_pairs,
        vocab_size=WORDS,
        d_model=256,
        d_kv=64,
        d_ff=512,
        num_layers=2,
        num_heads=4,
        sdpa=False,
    ),
    _hugging(
        "BART",
        "BartForConditionalGeneration",
        _text_pairs,
        vocab_size=WORDS,
        d_model=256,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=512,
        decoder_ffn_dim=512,
    ),
    _hugging(
        "Whisper",
        "WhisperForConditionalGeneration",
        _whisper,
        vocab_size=WORDS,
        d_model=256,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=512,
        decoder_ffn_dim=512,
        max_source_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    ),
    _hugging("Wav2Vec2", "Wav2Vec2Model", _sound, **_SPEECH),
    _hugging("HuBERT", "HubertModel", _sound, **_SPEECH),
    _hugging(
        "CLIP",
        "CLIPModel",
        _clip,
        text_config={**_ENCODER, "eos_token_id": 2},
        vision_config={**_PICTURE, "patch_size": 16},
    ),
    _hugging("ViT", "ViTModel", _picture_input(), **_PICTURE),
    _hugging(
        "Swin",
        "SwinModel",
        _picture_input(),
        image_size=64,
        window_size=4,
        depths=[1, 2],
        embed_dim=48,
        num_heads=[2, 4],
        sdpa=False,
    ),
    _hugging(
        "DINOv2",
        "Dinov2Model",
        _picture_input(56),
        hidden_size=192,
        num_hidden_layers=3,
        num_attention_heads=3,
        image_size=56,
    ),
    _hugging("SegFormer", "SegformerForSemanticSegmentation", _picture_input(), sdpa=False),
    _hugging("ConvNeXt", "ConvNextModel", _picture_input(), depths=[1, 1, 2, 1], sdpa=False),
    _hugging("ResNet", "ResNetModel", _picture_input(), depths=[1, 1, 1, 1], sdpa=False),
]

# ---- diffusion ----


def _unet() -> Made:
    import torch

    from .torch_diffusion import UNet

    return UNet(64), (_pictures(32, 4), torch.tensor([3, 500]), torch.randn(BATCH, 8, 64)), {}


def _dit() -> Made:
    import torch

    from .torch_diffusion import DiT

    return DiT(128, 2, 4), (_pictures(16, 4), torch.tensor([3, 500])), {}


DIFFUSION = [Architecture("UNet (diffusion)", "torch", _unet), Architecture("DiT", "torch", _dit)]

ARCHITECTURES = [*VISION, *TIMM, *HUGGING, *DIFFUSION]
