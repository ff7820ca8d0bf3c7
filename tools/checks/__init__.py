"""The rules behind `make check`, one module a topic; tools/presubmit.py runs them."""
