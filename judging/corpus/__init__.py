"""What judges and people say of a corpus: the offline checks on every trace, samples for people, rates of errors."""
