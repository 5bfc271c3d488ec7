"""The operating system's disk, and the text about a disk that failed."""
