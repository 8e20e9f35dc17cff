"""Parts of a model that several families build in the same way."""
