"""communication: hidden and exposed communication of each step, device and operation."""
