"""Twelve hazards of a conversation, played through the public ways of palaver and four other libraries, against servers that refuse what the vendors refuse."""
