"""One rubric asked of one judge model: the text, the prompt, the reply."""
