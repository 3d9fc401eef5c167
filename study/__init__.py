"""How position encodings do beyond the length they were trained at: ./run study, docs/study.md."""
