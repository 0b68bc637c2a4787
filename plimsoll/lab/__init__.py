"""The lab: clones of a site on storage backends, what keeps their disks busy, and what is seen meanwhile.

It runs programs, on this machine or over SSH; of the rest it knows run directories only.
"""
