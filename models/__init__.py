"""The `rooflang.models` package: a folder at the top level of the repository, linked into `rooflang`."""

if __name__ != "rooflang.models":
    raise ImportError("import this package as `rooflang.models`, not as `models`")
