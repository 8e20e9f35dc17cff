"""RoofLang: equality saturation for the architecture of LLM inference systems."""

__version__ = "0.1.0"
