"""A program of many processes is one job: its ranks, the directory in which they meet, and their cases made into one.

place      which rank of which job this process is, from what its launcher has set
directory  the shared directory: who has come, who still reports, what each has written
summary    a rank's case → what the job needs to know of it, bounded in size
merge      what all ranks have written → one Case
launching  starts the ranks of a job on one machine
"""
