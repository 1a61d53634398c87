"""The frozen nouns that every layer speaks of; imports nothing of ours."""
