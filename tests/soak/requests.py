#!/usr/bin/env python3
"""A list of requests for soak_hit_ratio: a few objects are asked for often, many once."""
import random
import sys

N, OBJECTS = int(sys.argv[1]), int(sys.argv[2])
rnd = random.Random(1998)
for _ in range(N):
    o = int(OBJECTS * rnd.random() ** 3)
    print(o, 200 + o * 7919 % 20011)
