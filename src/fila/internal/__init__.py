"""How our own code reads bytes of the contract. Generated from proto/fila/internal; no part of the contract."""
