"""What is in the way of a guard on this machine, one line per check. Looks, changes nothing, says the way out."""
