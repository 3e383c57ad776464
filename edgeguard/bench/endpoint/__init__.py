"""An endpoint elsewhere, measured over HTTP as what runs today, so that it can be compared."""
