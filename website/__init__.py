"""The documentation site: the pages of docs/, and reference pages made from the code itself (`make docs`)."""
