"""The registered models: each `<name>.json` is the `config.json` of a published checkpoint (sources: ../SOURCES.md)."""
