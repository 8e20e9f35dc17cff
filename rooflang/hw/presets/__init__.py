"""The platforms that ship with RoofLang, one TOML file each; read them with `rooflang.hw.load_platform`."""
