"""Several processes as one broker: who has which queue, and how calls reach it."""
