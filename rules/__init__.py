"""The `rooflang.rules` package; it lives at the top level of the repository and is linked into `rooflang`."""

if __name__ != "rooflang.rules":
    raise ImportError("import this package as `rooflang.rules`, not as `rules`")
