"""The loops that own files, progress, resume and reports."""
