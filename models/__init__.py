"""The `rooflang.models` package; it lives at the top level of the repository and is linked into `rooflang`."""

if __name__ != "rooflang.models":
    raise ImportError("import this package as `rooflang.models`, not as `models`")
