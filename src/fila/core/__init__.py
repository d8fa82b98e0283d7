"""The decisions of the broker: pure, standard library only, time as an argument."""
