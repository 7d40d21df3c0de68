"""The Adjudicate page: the traces where people differ, and one of them decided; `adjudicate.py` is what opens."""
