"""All pages of a run beside one another: what they say of the same thing must be the same."""
