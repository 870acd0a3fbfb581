"""Learners as pure functions, vmappable over seeds and hyper-parameters."""
