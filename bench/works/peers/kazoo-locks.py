"""kazoo's Lock as a peer. Arguments: servers, path, clients. Reads `run MS` lines and answers each with the number of locks
taken and released by all clients together. One process for each client: threads would wait for each other's interpreter."""

import ctypes
import multiprocessing
import signal
import sys
import time

from kazoo.client import KazooClient


PR_SET_PDEATHSIG = 1


def client(servers, path, pipe, inside):
    # Nobody is left behind when the benchmark is stopped: a client that waits for a server hears nothing of its pipe.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    zookeeper = KazooClient(hosts=servers, timeout=30)
    zookeeper.start()
    lock = zookeeper.Lock(path, "bench")
    pipe.send("ready")
    while True:
        seconds = pipe.recv() / 1000
        until = time.monotonic() + seconds
        count = 0
        while time.monotonic() < until:
            lock.acquire()
            inside.value += 1
            if inside.value != 1:
                raise RuntimeError("two are inside at once")
            inside.value -= 1
            lock.release()
            count += 1
        pipe.send(count)


def main():
    servers, path, clients = sys.argv[1], sys.argv[2], int(sys.argv[3])
    inside = multiprocessing.Value("i", 0, lock=False)
    pipes = []
    for _ in range(clients):
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.Process(target=client, args=(servers, path, theirs, inside), daemon=True).start()
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()
    print("ready", flush=True)
    for line in sys.stdin:
        for pipe in pipes:
            pipe.send(int(line.split()[1]))
        print(sum(pipe.recv() for pipe in pipes), flush=True)


main()
