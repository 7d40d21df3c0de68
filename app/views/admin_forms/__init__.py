"""The forms of the Admin page that are too long to stand in it: queues, and who is assigned to them."""
