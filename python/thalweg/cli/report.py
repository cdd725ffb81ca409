def add(commands, now): pass
