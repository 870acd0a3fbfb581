"""PASS@(k, T): did training move the capability boundary, or only its efficiency?"""
