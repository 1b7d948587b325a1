# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Another user of the host connects before the ranks do, and is refused."""

import os
import socket
import struct
import subprocess
import sys
import unittest

import processes
import programs

COMMS = {part["name"] for part in
         programs.run("howmany-devices", "--json").json()["backends"]["comms"] if part["usable"]}
NOBODY = 65534
PATIENCE = 60
TRAIN = ("--model", "mlp:sizes=64-64-10", "--mode", "ddp", "--backend", "gloo", "--oversubscribe", "--epochs", "1")
# Arguments: port, hex bytes to send. Prints a line once connected, then the answer as hex.
CLIENT = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("connected", flush=True)
s.sendall(bytes.fromhex(sys.argv[2]))
try:
    print(s.recv(4).hex(), flush=True)
except ConnectionResetError:
    print("", flush=True)
sys.stdin.read()
"""
SERVER = """
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    peer, _ = s.accept()
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
@unittest.skipUnless(os.geteuid() == 0, "only root may start programs of another user")
class Outsider(programs.TestCase):
    def popen(self, *command, **options):
        return super().popen(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, **options)

    def outsider(self, code, *arguments, user=NOBODY):
        return self.popen("/usr/bin/python3", "-c", code, *arguments, user=user, cwd="/")

    def rank(self, rank, **environment):
        return self.popen(programs.BIN / "howmany-train", *TRAIN, env={
            **os.environ, "RANK": str(rank), "WORLD_SIZE": "2", **environment})

    def meet_with_an_outsider(self, folder):
        """Returns what rank 0 says after an outsider has connected to its port first."""
        first = self.rank(0, HOWMANY_RENDEZVOUS=f"file:{folder}")
        _, port = self.wait_until("a port of rank 0", lambda: processes.listening(first.pid))[0]
        outsider = self.outsider(CLIENT, port, "")
        self.assertEqual(outsider.stdout.readline(), "connected\n")
        second = self.rank(1, HOWMANY_RENDEZVOUS=f"file:{folder}")
        err = first.communicate(timeout=PATIENCE)[1]
        second.kill()
        outsider.kill()
        return first.returncode, err

    def test_connection_of_another_user_is_refused(self):
        # Gloo chooses by the port numbers which rank accepts. The other drops its first connection.
        for attempt in range(40):
            code, err = self.meet_with_an_outsider(self.folder / f"meet{attempt}")
            if code != 0:
                self.assertIn("another user of this host", err)
                return
        self.fail("rank 0 never accepted a connection")

    def test_server_of_another_user_is_refused(self):
        outsider = self.outsider(SERVER)
        port = outsider.stdout.readline().strip()
        rank = self.rank(1, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        err = rank.communicate(timeout=PATIENCE)[1]
        self.assertNotEqual(rank.returncode, 0)
        self.assertRegex(err, f"another user of this host listens on 127.0.0.1:{port}")

    def test_rendezvous_answers_only_its_own_user(self):
        port = free_port()
        first = self.rank(0, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        self.wait_until("the rendezvous", lambda: (
            any(at[1] == port for at in processes.listening(first.pid))))
        request = b"g" + struct.pack("!II", 1, 0) + b"x"
        answers = {}
        for user in (0, NOBODY):
            client = self.outsider(CLIENT, port, request.hex(), user=user)
            self.assertEqual(client.stdout.readline(), "connected\n")
            answers[user] = client.stdout.readline().strip()
            client.kill()
        self.assertEqual(answers, {0: "ffffffff", NOBODY: ""})


if sys.version_info < (3, 9):
    sys.exit(77)
programs.main()
