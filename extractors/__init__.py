"""The `rooflang.extractors` package: a folder at the top level of the repository, linked into `rooflang`."""

if __name__ != "rooflang.extractors":
    raise ImportError("import this package as `rooflang.extractors`, not as `extractors`")
