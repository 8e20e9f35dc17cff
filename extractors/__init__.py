"""The `rooflang.extractors` package; it lives at the top level of the repository and is linked into `rooflang`."""

if __name__ != "rooflang.extractors":
    raise ImportError("import this package as `rooflang.extractors`, not as `extractors`")
