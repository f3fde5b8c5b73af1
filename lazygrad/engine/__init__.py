"""Running: schedules become launches, programs are compiled once, and DEBUG shows what happens."""
