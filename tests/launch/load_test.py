# labels: process
# timeout: 300
"""Each measuring command on a machine that other programs keep busy: its answer is not certain, and says why."""
import json

import load
import programs


class UnderLoad(programs.TestCase):
    def answer(self, question, *arguments):
        with load.busy_cores():
            done = programs.run("howmany", question, *arguments, "--json", "--quiet", "--out", self.folder / "out",
                                timeout=280)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(json.loads((self.folder / "out/summary.json").read_text()), done.json())
        return done.json()["answer"][question]

    def assert_marked(self, answer):
        self.assertIs(answer["certain"], False, answer["because"])
        self.assertIs(answer["disturbed"], True, answer["because"])
        self.assertTrue(answer["because"].startswith("Uncertain"), answer["because"])

    def test_gpus(self):
        answer = self.answer("gpus", "--model", "mlp", "--devices", "cpu:0", "--mode", "data_parallel", "--rounds", "1",
                             "--time-budget", "20")
        self.assert_marked(answer)
        self.assert_marked(answer["cases"][0])

    def test_workers(self):
        self.assert_marked(self.answer("workers", "--workers", "1,2", "--image-size", "64", "--time-budget", "8"))

    def test_backend(self):
        self.assert_marked(self.answer("backend", "--backend", "local", "--ops", "all_reduce", "--max-bytes", "1M",
                                       "--oversubscribe", "--time-budget", "12"))

    def test_transfer(self):
        self.assert_marked(self.answer("transfer", "--max-bytes", "1M", "--time-budget", "6"))


if __name__ == "__main__":
    programs.main()
