"""`make fuzz`: random damage to real files, replies and requests; none may crash, hang or fail uncleanly."""
