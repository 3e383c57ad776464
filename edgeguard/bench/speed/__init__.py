"""Speed: what machine and model do at best, where a request's time goes, and which setting makes it least."""
