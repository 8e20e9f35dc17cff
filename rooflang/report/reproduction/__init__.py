"""The RoofLang paper's evaluation (arXiv 2609.12551), recomputed: jobs that are kept as they are done, and a report."""
