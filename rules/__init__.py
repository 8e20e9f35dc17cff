"""The `rooflang.rules` package: a folder at the top level of the repository, linked into `rooflang`."""

if __name__ != "rooflang.rules":
    raise ImportError("import this package as `rooflang.rules`, not as `rules`")
