"""Running: schedules become launches, programs are compiled once, recorded lists run again, DEBUG shows what
happens.
"""
