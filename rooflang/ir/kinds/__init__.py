"""The operator table: each module registers the kinds of one family."""
